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

TOOLS: dict[str, str] = {
    SUPER_RESOLUTION: "enlarge a small picture",
    DENOISING: "remove grain from a picture",
    DEBLURRING: "sharpen a picture",
    COLORIZATION: "add color to a grey picture",
    CLASSIFICATION: "say what kind of picture it is",
    DETECTION: "list the objects in a picture",
    CAPTIONING: "describe a picture in English",
    VISUAL_QUESTION: "answer an English question about a picture",
    TEXT_TO_IMAGE: "paint a picture from English text",
    TRANSLATION: "translate text",
    SENTIMENT: "judge the mood of English text",
    SUMMARIZATION: "shorten English text",
    QUESTION: "answer an English question about English text",
    FILL_MASK: "fill the gaps in English text",
}
"""Each tool's name and what it does. English is the language the experts work in."""
