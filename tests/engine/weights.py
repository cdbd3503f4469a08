"""Make what the engine's tests serve; run by an interpreter that has transformers and peft.

``python -m tests.engine.weights tiny FOLDER`` makes a model of the draft's architecture with random
weights and a small tokenizer of its own; ``… adapter FOLDER MODEL`` a LoRA adapter for a model, of
the shape that ``leapmodel train`` gives it, its weights random;
``… merged FOLDER MODEL ADAPTER`` the model with it merged; ``… smollm2 FOLDER`` the CPU preset's
weights of this name in a cache folder.
"""

from __future__ import annotations

import sys

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def make_tiny(folder: str) -> None:
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    marks = ["<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=512,
        special_tokens=marks,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["one two three four five six seven eight nine ten"], trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=marks[1], pad_token=marks[1]
    )
    fast.chat_template = TEMPLATE
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=512,
            hidden_size=128,
            intermediate_size=256,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            head_dim=64,
            max_position_embeddings=2048,
            bos_token_id=None,
            eos_token_id=fast.eos_token_id,
            pad_token_id=fast.pad_token_id,
        )
    )
    model.to(torch.bfloat16).save_pretrained(folder)
    fast.save_pretrained(folder)


def make_adapter(folder: str, base: str) -> None:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    from leapmodel.execution.training.sft import ADAPTED, ALPHA, RANK

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.bfloat16)
    settings = LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=ADAPTED, init_lora_weights=False)
    get_peft_model(model, settings).save_pretrained(folder)


def make_merged(folder: str, base: str, adapter: str) -> None:
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    PeftModel.from_pretrained(model, adapter).merge_and_unload().save_pretrained(folder)
    AutoTokenizer.from_pretrained(base).save_pretrained(folder)


def make_smollm2(cache: str) -> None:
    from leapmodel.execution.training.weights import SMOLLM2, cpu_weights

    print(cpu_weights([SMOLLM2], folder=cache, say=print).base(SMOLLM2))


if __name__ == "__main__":
    makers = {
        "tiny": make_tiny,
        "adapter": make_adapter,
        "merged": make_merged,
        "smollm2": make_smollm2,
    }
    makers[sys.argv[1]](*sys.argv[2:])
