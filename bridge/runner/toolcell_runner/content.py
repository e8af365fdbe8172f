"""Content of MCP that is not text: pictures, sound and resources."""
from __future__ import annotations

import os
import sys

from .values import Record, hide_types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


MAX_PARTS = 1000  # of a value are looked at for pictures


def text_or_none(value: object) -> str:
    return value if isinstance(value, str) else ""


class Binary(Record):
    """Bytes from a server: an image, audio, or a resource.

    Its items are as the server wrote them; `data` has the bytes, `mime_type` and `uri` say what they are, and
    save(path) writes them to a file.
    """

    _field = "data"

    @property
    def data(self) -> bytes:
        import binascii
        try:
            return binascii.a2b_base64(self[self._field])
        except (binascii.Error, ValueError, TypeError) as error:
            raise ValueError(f"the server sent {self.mime_type or 'data'} that is not base64: {error}") from None

    @property
    def mime_type(self) -> str:
        return text_or_none(self.get("mimeType"))

    @property
    def uri(self) -> str:
        return text_or_none(self.get("uri"))

    def save(self, path: str | os.PathLike[str]) -> str:
        """Writes the bytes to a file. Returns its path."""
        data = self.data
        with open(path, "wb") as file:
            file.write(data)
        return os.fspath(path)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, bytes]:
        kind = self.mime_type.partition(";")[0].strip().lower().replace("image/jpg", "image/jpeg")
        return {kind: self.data} if kind.startswith("image/") else {}

    def __bytes__(self) -> bytes:
        return self.data

    def __repr__(self) -> str:
        text = self.get(self._field) or ""
        size = len(text) * 3 // 4 - text[-2:].count("=")
        uri = f" {self.uri}" if self.uri else ""
        return f"<{self.mime_type or 'bytes'}{uri}, {size} bytes: .data, .save(path)>"


class BinaryResource(Binary):
    """A resource of bytes."""

    _field = "blob"


class ResourceText(str):
    """The text of a resource, with its `uri` and `mime_type`."""

    uri = mime_type = ""


class ResourceLink(Record):
    """A resource that can be read: await its read(), or call read_sync()."""

    runtime: Any  # the functions of mcp.runtime, set by publish

    @classmethod
    def of(cls, item: Any, server: str) -> ResourceLink:
        link = cls(item)
        link.__dict__.update(getattr(item, "__dict__", {}), server=server)
        return link

    @property
    def mime_type(self) -> str:
        return text_or_none(self.get("mimeType"))

    def read(self) -> Any:
        """Returns the content, as runtime.read_resource does. Await it."""
        return self.runtime.read_resource(self.__dict__["server"], self["uri"])

    def read_sync(self) -> Any:
        """read for code that cannot await."""
        return self.runtime.read_resource_sync(self.__dict__["server"], self["uri"])


def publish(runtime: Any) -> None:
    """Makes the classes part of mcp.runtime, where pickle looks for them."""
    from .documentation import Docs, ToolDoc, ToolSummary
    ResourceLink.runtime = runtime
    for kind in (Binary, BinaryResource, ResourceText, ResourceLink, ToolDoc, ToolSummary, Docs):
        setattr(sys.modules["mcp.runtime"], kind.__name__, kind)
        hide_types(kind)


def content_value(item: Any, server: str) -> Any:
    """Returns an item of a tool's or prompt's content that is not text."""
    if not isinstance(item, dict):
        return item
    kind = item.get("type")
    if kind in ("image", "audio") and isinstance(item.get("data"), str):
        return Binary(item)
    if kind == "resource" and isinstance(item.get("resource"), dict):
        return resource_item(item["resource"])
    if kind == "resource_link" and isinstance(item.get("uri"), str):
        return ResourceLink.of(item, server)
    return item


def resource_item(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    if isinstance(item.get("blob"), str):
        return BinaryResource(item)
    if not isinstance(item.get("text"), str):
        return item
    text = ResourceText(item["text"])
    text.uri, text.mime_type = text_or_none(item.get("uri")), text_or_none(item.get("mimeType"))
    return text


def with_attachments(value: Any, items: list[Any], server: str) -> Any:
    """Gives a structured value the content beside it that is not text: at attachments, and where it repeats it."""
    if not hasattr(value, "__dict__"):
        return value
    put_content(value, server, 20)
    if not isinstance(value, dict) or "attachments" not in value:
        value.__dict__["attachments"] = [content_value(item, server) for item in items]
    return value


def put_content(value: Any, server: str, depth: int) -> None:
    """Puts objects in the place of images and audio inside of a structured value."""
    places = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for place, item in list(places):
        if isinstance(item, dict) and item.get("type") in ("image", "audio") and "mimeType" in item:
            value[place] = content_value(item, server)
        elif depth:
            put_content(item, server, depth - 1)


def binaries_in(value: Any) -> list[Binary]:
    """Returns the images and audio inside a value, and beside it, each once. It looks at no more than MAX_PARTS."""
    found: list[Binary] = []
    waiting, looked = [value], 0
    while waiting and looked < MAX_PARTS:
        part = waiting.pop()
        looked += 1
        if isinstance(part, Binary):
            if part not in found:
                found.append(part)
            continue
        inside: Any = part.values() if isinstance(part, dict) else part if isinstance(part, (list, tuple)) else ()
        beside = getattr(part, "__dict__", {}).get("attachments")
        parts = [each for each, _ in zip(inside, range(MAX_PARTS))]
        waiting += reversed(parts + beside if isinstance(beside, list) else parts)
    return found
