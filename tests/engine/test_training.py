"""Training for real, in seconds: what is learned, what is kept, what is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leapmodel.errors import UsageError
from leapmodel.execution.training.encoding import AnswerCollator, Example, encode
from leapmodel.execution.training.pairs import Pairs, pairs_from_gold
from leapmodel.execution.training.pruning import prune
from leapmodel.execution.training.sft import Recipe, load_model, train_draft
from leapmodel.execution.training.tiny import make_tiny
from tests.execution.scripted import PLANNING

torch = pytest.importorskip("torch", reason="needs the train extra: make test-engine")
pytest.importorskip("peft")

PAIRS = pairs_from_gold(PLANNING, PLANNING.tasks("train")[:12])
QUICK = Recipe(rank=8, alpha=16, learning_rate=5e-3, epochs=2, batch_size=8)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base") / "tiny"
    make_tiny(folder, "1.7M", n_texts=64)
    return folder


def tensors_of(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(folder / "adapter_model.safetensors")


def test_a_packed_batch_has_the_loss_and_gradient_of_separate_rows(base: Path):
    model, tokenizer = load_model(base, whole=True)
    examples = encode(tokenizer, list(PAIRS.contexts)[:6], longest=1024)
    features = [{"input_ids": e.input_ids, "n_answer": e.n_answer} for e in examples]

    def gradient(collator: AnswerCollator) -> tuple[float, Any, Any]:
        model.zero_grad()
        batch = collator(features)
        loss = model(**batch).loss
        loss.backward()
        flat = torch.cat([one.grad.ravel() for one in model.parameters()])
        return float(loss.detach()), flat, batch["input_ids"].shape

    packed, packed_gradient, packed_shape = gradient(AnswerCollator(0))
    padded, padded_gradient, padded_shape = gradient(AnswerCollator(0, longest_row=1))
    assert packed_shape[0] == 1
    assert packed_shape[1] < padded_shape[0] * padded_shape[1] / 2
    assert packed == pytest.approx(padded, rel=1e-5)
    assert torch.allclose(packed_gradient, padded_gradient, atol=1e-5)
    # and both are the mean over answer tokens, one example at a time
    losses = []
    for example in examples:
        ids = torch.tensor([example.input_ids])
        said = model(input_ids=ids).logits[0].log_softmax(-1)
        first = len(example.input_ids) - example.n_answer
        losses += [-said[i - 1, ids[0, i]].item() for i in range(first, ids.shape[1])]
    assert packed == pytest.approx(np.mean(losses), rel=1e-5)


def test_only_the_answer_and_its_end_are_learned(base: Path):
    _, tokenizer = load_model(base, whole=False)
    messages, answer = next(iter(PAIRS.contexts))
    (example,) = encode(tokenizer, [(messages, answer)], longest=1024)
    learned = tokenizer.decode(example.input_ids[-example.n_answer :])
    assert learned == answer + tokenizer.eos_token
    assert messages[-1]["content"] in tokenizer.decode(example.input_ids[: -example.n_answer])


def test_a_pair_that_is_too_long_is_refused(base: Path):
    _, tokenizer = load_model(base, whole=False)
    with pytest.raises(UsageError, match="more than 50"):
        encode(tokenizer, PAIRS.contexts, longest=50)


@pytest.mark.parametrize("select", ["loss", "exact-match"])
def test_the_best_epoch_is_kept(base: Path, tmp_path: Path, select: Any):
    recipe = Recipe(rank=8, alpha=16, learning_rate=5e-3, epochs=3, batch_size=8, select=select)
    done = train_draft(PAIRS, base, tmp_path / "a", recipe)
    frame = done.to_frame()
    scores = frame["validation_loss"] if select == "loss" else -frame["validation_exact_match"]
    assert scores[done.chosen - 1] == scores.min()
    assert frame["training_loss"].iloc[-1] < frame["training_loss"].iloc[0]
    written = json.loads((tmp_path / "a" / "training.json").read_text())
    assert written["chosen"] == done.chosen
    assert written["recipe"]["rank"] == 8
    assert written["tasks"] + written["validation_tasks"] == 12
    config = json.loads((tmp_path / "a" / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"]) == (8, 16)


def test_the_same_seed_gives_the_same_adapter(base: Path, tmp_path: Path):
    for name in ("a", "b"):
        train_draft(PAIRS, base, tmp_path / name, QUICK)
    first, second = tensors_of(tmp_path / "a"), tensors_of(tmp_path / "b")
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_going_on_starts_from_the_adapter(base: Path, tmp_path: Path):
    train_draft(PAIRS, base, tmp_path / "first", QUICK)
    still = Recipe(learning_rate=1e-12, epochs=1)
    done = train_draft(PAIRS, base, tmp_path / "second", still, adapter=tmp_path / "first")
    before, after = tensors_of(tmp_path / "first"), tensors_of(tmp_path / "second")
    assert all(torch.allclose(before[name], after[name], atol=1e-6) for name in before)
    assert done.recipe.rank == 8
    assert done.continued_from == str(tmp_path / "first")


def test_full_fine_tuning_writes_a_model(base: Path, tmp_path: Path):
    train_draft(PAIRS, base, tmp_path / "full", Recipe(full=True, learning_rate=1e-3, epochs=1))
    assert not (tmp_path / "full" / "adapter_config.json").exists()
    before, _ = load_model(base, whole=True)
    after, tokenizer = load_model(tmp_path / "full", whole=True)
    assert tokenizer.chat_template
    assert any(
        not torch.equal(one, other)
        for one, other in zip(before.parameters(), after.parameters(), strict=True)
    )


def test_a_model_pruned_of_tokens_alone_says_what_it_said(base: Path, tmp_path: Path):
    texts = [answer for _, answer in PAIRS.contexts]
    whole, tokenizer = load_model(base, whole=True)
    pruned, _ = load_model(base, whole=True)
    smaller = prune(pruned, tokenizer, texts, range(whole.config.num_hidden_layers))
    pruned.save_pretrained(tmp_path / "pruned")
    smaller.save_pretrained(tmp_path / "pruned")
    pruned, smaller = load_model(tmp_path / "pruned", whole=True)
    assert len(smaller) < len(tokenizer) / 2
    for text in texts:
        ids, fewer = tokenizer(text).input_ids, smaller(text).input_ids
        tokens = tokenizer.convert_ids_to_tokens(ids)
        assert smaller.convert_ids_to_tokens(fewer) == tokens
        logits = whole(torch.tensor([ids])).logits[0, -1]
        kept = tokenizer.convert_tokens_to_ids(smaller.convert_ids_to_tokens(range(len(smaller))))
        assert torch.allclose(pruned(torch.tensor([fewer])).logits[0, -1], logits[kept], atol=1e-5)


def test_a_pruned_tokenizer_still_reads_any_text(base: Path):
    model, tokenizer = load_model(base, whole=True)
    smaller = prune(model, tokenizer, ["<tool>Image Denoising</tool>"], [0, 3, 5])
    assert model.config.num_hidden_layers == 3
    said = "Ein völlig anderer Satz: 12 €, 🙂."
    assert smaller.decode(smaller(said).input_ids) == said
    assert smaller.eos_token == tokenizer.eos_token
    assert model.config.eos_token_id == smaller.eos_token_id
    chat = [{"role": "user", "content": said}]
    assert smaller.apply_chat_template(chat, tokenize=False) == tokenizer.apply_chat_template(
        chat, tokenize=False
    )


def test_few_tasks_are_all_learned_from(base: Path, tmp_path: Path):
    few = PAIRS.of_tasks(PAIRS.task_names[:2])
    done = train_draft(few, base, tmp_path / "a", QUICK)
    assert (done.tasks, done.validation_tasks, done.chosen) == (2, 0, 2)
    assert done.epochs[0].validation_loss is None


def test_what_can_not_be_trained_is_said_in_one_line(base: Path, tmp_path: Path):
    with pytest.raises(UsageError, match="not a model that transformers can load"):
        train_draft(PAIRS, tmp_path / "nothing", tmp_path / "a", QUICK)
    with pytest.raises(UsageError, match="no adapter_config"):
        train_draft(PAIRS, base, tmp_path / "a", QUICK, adapter=tmp_path)
    with pytest.raises(UsageError, match="no pair to learn from"):
        train_draft(Pairs(PAIRS.frame.iloc[:0]), base, tmp_path / "a", QUICK)
    assert not (tmp_path / "a").exists()


def test_a_batch_longer_than_a_row_is_padded():
    examples = [Example(list(range(n)), 2) for n in (9, 7)]
    features = [{"input_ids": e.input_ids, "n_answer": e.n_answer} for e in examples]
    batch = AnswerCollator(0, longest_row=8)(features)
    assert batch["input_ids"].tolist()[1] == [0, 0, 0, 1, 2, 3, 4, 5, 6]
    assert batch["attention_mask"].tolist()[1] == [0, 0, 1, 1, 1, 1, 1, 1, 1]
    assert batch["labels"].tolist() == [[7, 8, -100], [5, 6, -100]]
    assert batch["position_ids"].tolist()[1] == [0, 0, 0, 1, 2, 3, 4, 5, 6]
