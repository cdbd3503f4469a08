"""The tools of the planning benchmark: 14 domain experts, as in the paper's OpenAGI setting."""

from __future__ import annotations

SUPER_RESOLUTION = "Image Super Resolution"
DENOISING = "Image Denoising"
DEBLURRING = "Image Deblurring"
COLORIZATION = "Colorization"
CLASSIFICATION = "Image Classification"
DETECTION = "Object Detection"
CAPTIONING = "Image Captioning"
VISUAL_QUESTION = "Visual Question Answering"
TEXT_TO_IMAGE = "Text to Image Generation"
TRANSLATION = "Machine Translation"
SENTIMENT = "Sentiment Analysis"
SUMMARIZATION = "Text Summarization"
QUESTION = "Question Answering"
FILL_MASK = "Fill Mask"

TOOLS = (
    SUPER_RESOLUTION,
    DENOISING,
    DEBLURRING,
    COLORIZATION,
    CLASSIFICATION,
    DETECTION,
    CAPTIONING,
    VISUAL_QUESTION,
    TEXT_TO_IMAGE,
    TRANSLATION,
    SENTIMENT,
    SUMMARIZATION,
    QUESTION,
    FILL_MASK,
)
"""Their names. They work in English."""
