"""What the page of chapter 01 states, computed anew."""

from llmtrain_helpers.evidence import published


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
