"""What the page of chapter 01 states, computed anew."""

from dataclasses import replace

from llmtrain_helpers import count_parameters, published, units
from tests.pages import cell


def test_what_is_said_of_deepseek_is_so() -> None:
    page, model = cell("evidence/01_parameters", "latent"), published.config_model("DeepSeek-V3")
    counted, [(dense, _), (sparse, layer)] = count_parameters(model), model.layers
    h = model.hidden_size
    assert (dense, sparse) == (3, 58)
    assert f"{counted.total:,} parameters, and a token meets" in page
    assert f"meets {units.count(counted.active)}. Published" in page
    text = cell("01_parameters", "experts-seen")
    assert f"DeepSeek-V3 can have {units.count(counted.total)} parameters" in text
    # of the embedding it looks up a row: without it, DeepSeek's own number and chapter 03's
    looked_up = units.count(counted.active - counted.embedding, 2)
    assert f"a token only uses {looked_up}" in text
    assert f"For DeepSeek-V3 that's {looked_up}, " in cell("03_duration", "recap")
    assert f"shows {counted.active / 1e9:.1f}, because" in text
    assert f"holds {units.count(layer.mlp.parameters(h))} parameters" in page
    met = layer.mlp.parameters(h) - layer.mlp.idle(h)
    assert f"meets {units.count(met)} of them" in page
    assert f"{units.count(layer.mixer.parameters(h))} parameters a layer" in page
    assert f"would have {units.count(4 * h * 128 * 128)}." in page
    copies = counted.prediction + counted.embedding + counted.head
    sentence = (
        f"{units.count(counted.prediction)} parameters, or {units.count(copies)} with its copies"
    )
    assert f"{sentence} of embedding and head, which aren't part of the 671 billion" in page


def test_what_the_page_says_of_vocabularies_and_depths_is_so() -> None:
    page = cell("01_parameters", "recap")
    for name, percentage in {"70B": "3%", "8B": "13%"}.items():
        counted = count_parameters(published.architecture(f"Llama-3.1-{name}"))
        share = (counted.embedding + counted.head) / counted.total
        assert f"{round(100 * share)}%" == percentage
        assert percentage in page
    untied = replace(published.architecture("Llama-3.2-1B"), tied_embeddings=False)
    counted = count_parameters(untied)
    assert round(100 * 2 * counted.embedding / counted.total) == 35
    models = published.architectures().query("name.str.lower().str.startswith('llama')")
    big = models[models["parameters"] > 6e9]
    ratios = big["hidden_size"] / big["num_layers"]
    assert (int(ratios.min()), round(ratios.max())) == (102, 130)


def test_every_llama_of_the_data_differs_from_a_gpt_in_four_ways_at_least() -> None:
    for row in published.architectures().query("kind == 'llama'").to_dict("records"):
        model = published.architecture(row["name"])
        ways = [
            model.gated_mlp,
            model.num_kv_heads < model.num_heads,
            not model.tied_embeddings,
            model.num_positions == 0,
            not (model.bias or model.qkv_bias),
            not model.layer_norm,
        ]
        assert sum(ways) >= 4, row["name"]
        assert row["name"] != "Llama-3.1-8B" or all(ways)
