"""OpenAI's client for what Azure serves."""

import openai
from steps import BASE, KEY, WORDS, run

client = openai.AzureOpenAI(azure_endpoint=BASE, api_key=KEY, api_version="2024-10-21", max_retries=0)
MESSAGES = [{"role": "user", "content": WORDS}]


def call() -> str | None:
    return client.chat.completions.create(model="m", messages=MESSAGES).choices[0].message.content


def stream() -> list[str | None]:
    with client.chat.completions.create(model="m", messages=MESSAGES, stream=True) as chunks:
        return [chunk.choices[0].delta.content for chunk in chunks]


run({"call": call, "stream": stream})
