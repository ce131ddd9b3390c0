"""Models of any shape, for properties that hold for all of them."""

from hypothesis import strategies as st

from llmtrain_helpers import Transformer


@st.composite
def transformers(draw) -> Transformer:
    whole = st.integers(1, 500)
    kv, group, d = draw(whole), draw(whole), draw(whole)
    l, f, V, s = (draw(whole) for _ in range(4))
    if draw(st.booleans()):
        tied = draw(st.booleans())
        return Transformer.gpt(l, kv * group * d, kv * group, V, s, tied)
    chosen = draw(st.integers(0, 8))
    experts = draw(st.integers(chosen, 64)) if chosen else 0
    traits = {name: draw(st.booleans()) for name in ("tied_embeddings", "qkv_bias", "qk_norm")}
    head = draw(st.sampled_from([None, 128]))
    return Transformer.llama(
        l,
        kv * group * d,
        kv * group,
        kv,
        f,
        V,
        s,
        head,
        num_experts=experts,
        experts_per_token=chosen,
        **traits,
    )
