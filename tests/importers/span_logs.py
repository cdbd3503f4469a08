"""The span formats, and the fixtures that hold their shapes."""

from pathlib import Path

FIXTURES = Path(__file__).parent / "fixtures" / "spans"
FORMAT_OF = {
    "otlp_new.jsonl": "otlp",
    "otlp_old.json": "otlp",
    "otlp_records.json": "otlp",
    "phoenix.json": "openinference",
    "langfuse.json": "langfuse",
    "langsmith.jsonl": "langsmith",
    "mlflow.jsonl": "mlflow",
    "openai_agents.jsonl": "openai-agents",
    "litellm.jsonl": "litellm",
}
SPAN_FORMATS = sorted(set(FORMAT_OF.values()))
