"""SmolLM2 made smaller: fewer layers, and of the vocabulary what the benchmark's texts use.

A processor without fast bfloat16 reads 540 MB of weights for every token of SmolLM2-135M, and is
held up by its memory. A quarter of the layers and the words that are needed are 30 million
parameters, that keep SmolLM2's embeddings and some of its layers but have to be taught again to
make sense of each other; :func:`~leapmodel.execution.training.target.make_pruned_target` does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from leapmodel.execution.extras import require
from leapmodel.execution.training.encoding import EXTRA

LAYERS = (0, 4, 8, 12, 16, 20, 24, 29)
"""The layers that stay, of thirty. Taught the same 81 batches, the first eight came to a loss of
0.62 on validation texts, these to 0.49."""


def prune(model: Any, tokenizer: Any, texts: Iterable[str], layers: Sequence[int]) -> Any:
    """Leave of a model some layers and some tokens, and return the tokenizer for these.

    Parameters
    ----------
    model : transformers model
        Of Llama's or Qwen3's kind, its embeddings tied. Changed in place.
    tokenizer : transformers tokenizer
        Its own, of byte-level BPE.
    texts : iterable of str
        Texts that are to be tokenized as before; any other still is, in more tokens.
    layers : sequence of int
        Which of the layers stay, in their order.

    Returns
    -------
    transformers tokenizer
        Of the tokens that are left, numbered anew.
    """
    torch = require("torch", EXTRA)
    smaller, kept = _smaller_tokenizer(tokenizer, texts)
    inner, config = model.model, model.config
    inner.layers = torch.nn.ModuleList(inner.layers[at] for at in layers)
    for at, layer in enumerate(inner.layers):
        layer.self_attn.layer_idx = at
    config.num_hidden_layers = len(inner.layers)
    if getattr(config, "layer_types", None):
        config.layer_types = [config.layer_types[at] for at in layers]
    model.set_input_embeddings(
        torch.nn.Embedding.from_pretrained(inner.embed_tokens.weight[kept].clone(), freeze=False)
    )
    model.lm_head = torch.nn.Linear(config.hidden_size, len(kept), bias=False)
    config.vocab_size = len(kept)
    model.tie_weights()
    for name in ("bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id"):
        for settings in (config, model.generation_config):
            if getattr(settings, name, None) is not None:
                setattr(settings, name, getattr(smaller, name))
    return smaller


def _smaller_tokenizer(tokenizer: Any, texts: Iterable[str]) -> tuple[Any, list[int]]:
    """Return a tokenizer of the tokens that texts need, and which tokens these were."""
    tokenizers = require("tokenizers", EXTRA)
    said = json.loads(tokenizer.backend_tokenizer.to_str())
    vocabulary: dict[str, int] = said["model"]["vocab"]
    # Taken before the text is split, so not merged from others, and all kept: they are few. Most
    # have their numbers behind the vocabulary.
    added = {one["content"]: one["id"] for one in said["added_tokens"]}
    behind = {token: number for token, number in added.items() if token not in vocabulary}
    token_of = {number: token for token, number in (vocabulary | behind).items()}
    used = {token_of[at] for text in texts for at in set(tokenizer(text).input_ids)}
    used = (used | set(added)) & set(vocabulary)
    # The single bytes stand at no fixed place, but nothing is made of them: no merge gives one.
    merges = [tuple(merge) for merge in said["model"]["merges"]]
    wanted = used | (set(vocabulary) - {left + right for left, right in merges})
    # A token is merged from others that are merged themselves; the last merges need the first.
    for left, right in reversed(merges):
        if left + right in wanted:
            wanted |= {left, right}
    kept = [*sorted(vocabulary[token] for token in wanted), *sorted(behind.values())]
    renumbered = {token_of[old]: new for new, old in enumerate(kept)}
    said["model"]["vocab"] = {token: renumbered[token] for token in wanted}
    said["model"]["merges"] = [list(merge) for merge in merges if merge[0] + merge[1] in wanted]
    for one in said["added_tokens"]:
        one["id"] = renumbered[one["content"]]
    smaller = type(tokenizer)(
        tokenizer_object=tokenizers.Tokenizer.from_str(json.dumps(said)),
        **tokenizer.special_tokens_map,
        chat_template=tokenizer.chat_template,
        model_max_length=tokenizer.model_max_length,
    )
    return smaller, kept
