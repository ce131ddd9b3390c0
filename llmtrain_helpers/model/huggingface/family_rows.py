"""The rows of `families`: what each `model_type` of a `config.json` means, a row each.

A row is a name and words, out of `data/family_rows.csv`. What it leaves out is as in a
Llama, whose keys `families` lists. This one, of a family that there is not, has every sign
once:

mini                            the `model_type` of the files
MiniMoe                         class whose parameters are counted: MiniMoeForCausalLM
-head_dim                       -key: a Llama's key that these files do not have
hidden_size=2048                key=default: a key, and its value where it is left out
tie_word_embeddings=True
attention_bias=False
n_positions=1024
num_experts=8
num_experts_per_tok=2
layers_in_period=4
num_local_experts>num_experts   spelling>key: a second name for one of the keys
attention_bias+qkvo             key+letters: a key that brings these biases
hidden_act!relu2                key!value: the one value that is known of a key
n_positions:sequence_length     key:name: what a key stands for, where it does not say so
~norm_topk_prob                 ~key: a key that changes no matrix
.gated=no                       .trait=value: a trait of `families.Family`
.sinks                          .trait: the same as .trait=True
.norms=@three_with_experts      .trait=@rule: a function of `rules`, or of `makers`
.kinds=@full_every:layers_in_period:linear_attention   :value: what a rule is made with
linear_attention@lightning_attention                   kind@rule: what makes the mixer

A row with `^llama` behind its class begins with all the words of that row, which stands
above: a word of its own then takes the place of what it contradicts, and -key takes away
any key of that row.

Source: the configuration and modelling classes of Hugging Face transformers 5.23.
"""

from __future__ import annotations

from llmtrain_helpers.model.tables import rows

ROWS = "\n".join(f"{x['name']} {x['model']} {x.get('words', '')}" for x in rows("family_rows"))
"""The rows, each in a line."""
