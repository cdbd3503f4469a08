"""Training for real, in seconds: what is learned, what is kept, what is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from leapmodel.actions import TERMINATE
from leapmodel.benchmarks.planning.tools import TOOLS
from leapmodel.cli import main
from leapmodel.errors import UsageError
from leapmodel.execution.training.encoding import AnswerCollator, Example, encode
from leapmodel.execution.training.pairs import Pairs
from leapmodel.execution.training.pruning import prune
from leapmodel.execution.training.sft import Recipe, load_model, train_draft
from leapmodel.execution.training.supervision import pairs_from_gold
from leapmodel.execution.training.tiny import make_tiny, make_tokenizer
from leapmodel.trace import Trace, write_trace
from tests.execution.scripted import PLANNING

torch = pytest.importorskip("torch", reason="needs the train extra: make test-engine")
transformers = pytest.importorskip("transformers")
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


@pytest.mark.parametrize("action", [*TOOLS, TERMINATE])
def test_a_tiny_drafts_answer_is_three_tokens_and_comes_back_as_it_was(base: Path, action: str):
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    written = PLANNING.answer("draft", action)
    ids = tokenizer(written).input_ids
    assert len(ids) == 3
    # What a server sends leaves special tokens out; a tool must not be one.
    assert tokenizer.decode(ids, skip_special_tokens=True) == written


def test_a_tiny_drafts_prompts_come_back_as_they_were(base: Path):
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    for task in PLANNING.tasks("test"):
        environment = PLANNING.start(task)
        for action in ("Question Answering", "Visual Question Answering"):
            environment.step(action)
        for message in environment.prompt("draft").messages:
            assert tokenizer.decode(tokenizer(message["content"]).input_ids) == message["content"]


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


def test_merged_weights_say_what_base_and_adapter_say(base: Path, tmp_path: Path):
    from peft import PeftModel

    train_draft(PAIRS, base, tmp_path / "merged", QUICK, merge=True)
    merged, tokenizer = load_model(tmp_path / "merged", whole=True)
    plain, _ = load_model(base, whole=True)
    ids = torch.tensor([encode(tokenizer, list(PAIRS.contexts)[:1], longest=1024)[0].input_ids])
    with torch.no_grad():
        untrained = plain(ids).logits
        ours = merged(ids).logits
        theirs = PeftModel.from_pretrained(plain, tmp_path / "merged" / "adapter")(ids).logits
    apart = (theirs - untrained).abs().max()
    assert apart > 1  # it has learned something
    assert (ours - theirs).abs().max() < 0.1 * apart  # merged weights are rounded to bfloat16


def test_a_training_that_is_stopped_while_it_saves_leaves_nothing(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(transformers.PreTrainedModel, "save_pretrained", stopped)
        with pytest.raises(KeyboardInterrupt):
            train_draft(PAIRS, base, tmp_path / "a", QUICK, merge=True)
    assert list(tmp_path.iterdir()) == []
    done = train_draft(PAIRS, base, tmp_path / "a", QUICK)
    assert json.loads((tmp_path / "a" / "training.json").read_text())["folder"] == done.folder


def test_a_base_without_those_layers_is_refused(tmp_path: Path):
    config = transformers.GPT2Config(n_layer=1, n_head=1, n_embd=8, vocab_size=300, n_positions=8)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path / "other")
    make_tokenizer(list(PAIRS.contexts)[:2]).save_pretrained(tmp_path / "other")
    with pytest.raises(UsageError, match="this base can't take an adapter"):
        train_draft(PAIRS, tmp_path / "other", tmp_path / "a", QUICK)
    assert not (tmp_path / "a").exists()


def test_the_command_trains_as_it_is_told(base: Path, tmp_path: Path):
    """On gold answers of a trace whose target was wrong, on half the tasks, from an adapter."""
    rows = [
        {"task": task.name, "step": 0, "gen_s": 1.0, "action": "Fill Mask"}
        for task in PLANNING.tasks("train")[:12]
    ]
    about = {"benchmark": {"name": "planning", "settings": PLANNING.settings}}
    write_trace(Trace.from_frame(pd.DataFrame(rows), about), tmp_path / "trace.jsonl")
    options = ["--base", str(base), "--epochs", "1", "--lr", "0.001", "--lora-rank", "8"]
    for name, more in (
        ("first", ["--supervision", "gold", "--fraction", "0.5", "--select", "exact-match"]),
        ("second", ["--continue", str(tmp_path / "first"), "--merge"]),
    ):
        command = ["train", str(tmp_path / "trace.jsonl"), "-o", str(tmp_path / name)]
        done = CliRunner().invoke(main, [*command, *options, *more])
        assert done.exit_code == 0, done.output
    first, second = (
        json.loads((tmp_path / name / "training.json").read_text()) for name in ("first", "second")
    )
    assert first["data"]["supervision"] == "gold"
    assert first["tasks"] + first["validation_tasks"] == 6
    assert first["pairs"] > first["tasks"]  # whole plans, not the one step of the trace
    assert first["recipe"]["select"] == "exact-match"
    assert second["data"]["supervision"] == "target"
    assert second["continued_from"] == str(tmp_path / "first")
    assert (tmp_path / "second" / "adapter" / "adapter_config.json").exists()


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
