from msgspec import Struct
from typing import Any
from mockllm.generation.plan import Prompt, Message
class ChatMessage(Struct):
    role: str
    content: Any = None
def prompt_of(ms):
    return Prompt(tuple(Message(m.role, m.content if isinstance(m.content,str) else "") for m in ms))
