"""Chapter 01."""

from collections.abc import Callable
from dataclasses import replace

from llmtrain_helpers import Transformer, count_parameters, published
from tests.faces.exercises.answers.table import Answers

EIGHT = count_parameters(published.architecture("Llama-3.1-8B"))

LAYERS = EIGHT.attention + EIGHT.mlp + EIGHT.norm

SMALL = Transformer.gpt(2, 64, 4, 100, 32)
SHELF = {
    name: count_parameters(published.architecture(name))
    for name in ("GPT-3 175B", "Mixtral-8x7B", "Llama-2-70b")
}


def attention(count: Callable[..., float]) -> Callable[..., float]:
    """A function with the names that the exercise gives."""

    def answer(hidden_size, num_heads, num_kv_heads, head_dim):
        return count(hidden_size, num_heads, num_kv_heads, head_dim)

    return answer


def design(l: int, h: int, f: int, V: int = 128256, tied: bool = True) -> Transformer:
    return Transformer.llama(l, h, h // 64, 8, f, V, 8192, tied_embeddings=tied)


ANSWERS = {
    "parameters-layer": Answers(
        right=[12 * 1600**2, 4 * 1600 * 1600 + 2 * 1600 * 6400],
        common_mistakes=[
            (4 * 1600**2, "You've counted attention's four matrices"),
            (8 * 1600**2, "only counted the MLP's matrices"),
            (6 * 1600**2, "4× wider"),
            (48 * 12 * 1600**2, "You've counted all 48 layers"),
            (12 * 1600**2 + 13 * 1600, "biases and norms"),
            (12 * 1600, "each contains h · h numbers"),
            (1600**2, "Your line gives 12× too little"),
        ],
    ),
    "parameters-b": Answers(
        right=[attention(lambda h, a, k, d: 2 * h * d * (a + k))],
        replies=[
            (attention(lambda h, a, k, d: 2 * h * d * (a + k)), "Right, in all 4 cases."),
            (lambda h, heads, kv, d: 2 * h * d * (heads + kv), "Right, in all 4 cases."),
            (lambda head_dim, h, a, k: 2 * h * head_dim * (a + k), "Right, in all 4 cases."),
            (lambda h, a, k, d, extra=1: 2 * h * d * (a + k), "Right, in all 4 cases."),
            (lambda h, a, k, d=128: 2 * h * d * (a + k), "Right, in all 4 cases."),
            (lambda h, a, k, d, /: 2 * h * d * (a + k), "Right, in all 4 cases."),
            (lambda h, /, *, a, k, head_dim: 2 * h * head_dim * (a + k), "Right, in all 4 cases."),
        ],
        common_mistakes=[
            *(
                (attention(count), reply)
                for count, reply in [
                    (lambda h, a, k, d: h * d * (a + 2 * k), "left out the output matrix"),
                    (lambda h, a, k, d: 4 * h * a * d, "some are shared"),
                    (lambda h, a, k, d: h * d * (2 * a + k), "are two matrices"),
                    (lambda h, a, k, d: 2 * h * (a + k), "left out the head size"),
                    (lambda h, a, k, d: 7, "it returned 7, which is too low. How many columns"),
                ]
            ),
            (
                attention(lambda h, a, k, d: 2 * h**2 + 2 * h * k * d),
                "used h × h for queries and output",
            ),
            (attention(lambda h, a, k, d: 4 * h**2), "4h², as in a GPT"),
            (attention(lambda h, a, k, d: h / 0), "ZeroDivisionError"),
            (42, "isn't a function"),
            (lambda h, **sizes: 1, "It takes h, sizes, but it should take hidden_size"),
            (
                lambda h, a: 1,
                "It takes h, a, but it should take hidden_size, num_heads, num_kv_heads",
            ),
        ],
        unanswered=[lambda **_: None],
    ),
    "parameters-c": Answers(
        right=[8.5e9],
        replies=[
            (4e9 + 36e9 / 8, "Right, 8.50 billion"),
            ("8.5B", "Right"),
            (8_500_000_000, "Right"),
        ],
        common_mistakes=[
            (5e9, "2/16 of everything"),
            (4.5e9, "experts that a token meets"),
            (4e9, "outside the experts. Add"),
            (6.25e9, "one expert per layer"),
            (40e9, "the total, but"),
            (8.5, "Give the number itself"),
            (85e9, "10× too high"),
            (9e9, "Too high. Which parameters does every token use, apart from"),
        ],
    ),
    "parameters-d": Answers(
        right=[design(20, 2048, 8192)],
        replies=[
            (design(20, 2048, 8192), "Right: 1.48 billion parameters, 17.8%"),
            (design(21, 2048, 8192), "Right"),
            (design(98, 1024, 3072, tied=False), "Right"),
        ],
        common_mistakes=[
            (design(16, 2048, 8192, tied=False), "more than 20%"),
            (design(16, 2048, 8192), "17.6% less than the budget"),
            (design(40, 2048, 8192), "more than the budget"),
            (design(20, 2048, 8192, 32000), "vocabulary should be 128,256"),
            (1.5e9, "isn't a model"),
        ],
    ),
    "parameters-e": Answers(
        right=[
            (SMALL, count_parameters(replace(SMALL, num_layers=4)).total),
            *((name, n.total + n.attention + n.mlp + n.norm) for name, n in SHELF.items()),
        ],
        replies=[
            (("Llama-3.1-8B", answer), reply)
            for answer, reply in [
                (EIGHT.total + LAYERS, "Right: 15.0 billion, 1.87× as many"),
                ("15.01B", "Right"),
                (15e9, "Right"),
            ]
        ],
        common_mistakes=[
            *(
                (("Llama-3.1-8B", answer), reply)
                for answer, reply in [
                    (2 * EIGHT.total, "doubled the whole model"),
                    (EIGHT.total, "the model as it is"),
                    (2 * LAYERS, "only counted the layers"),
                    (LAYERS, "what the new layers add"),
                    (12e9, "too low. Everything in the layers doubles"),
                    ("deep", "isn't a number"),
                ]
            ),
            *(((name, 2 * n.total), "doubled the whole model") for name, n in SHELF.items()),
            (("Lama-3.1-8B", 1), "did you mean 'Llama-3.1-8B'"),
            (15e9, "Give two values"),
        ],
        unanswered=[("gpt2", None)],
    ),
}
