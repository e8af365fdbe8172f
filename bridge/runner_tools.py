"""What the runner needs in some runs only: content that is not text, and what is shown about tools.

It runs in the namespace of runner.py.
"""


# Content


class Binary(Record):
    """Bytes from a server: an image, audio, or a resource.

    Its items are as the server wrote them; `data` has the bytes, `mime_type` and `uri` say what they are, and
    save(path) writes them to a file.
    """

    _field = "data"

    @property
    def data(self):
        import binascii
        try:
            return binascii.a2b_base64(self[self._field])
        except (binascii.Error, ValueError, TypeError) as error:
            raise ValueError(f"the server sent {self.mime_type or 'data'} that is not base64: {error}") from None

    @property
    def mime_type(self):
        return self.get("mimeType") or ""

    @property
    def uri(self):
        return self.get("uri") or ""

    def save(self, path):
        """Writes the bytes to a file. Returns its path."""
        data = self.data
        with open(path, "wb") as file:
            file.write(data)
        return os.fspath(path)

    def __bytes__(self):
        return self.data

    def __repr__(self):
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

    runtime = None  # set when this file is loaded

    @classmethod
    def of(cls, item, server):
        link = cls(item)
        link.__dict__["server"] = server
        return link

    @property
    def mime_type(self):
        return self.get("mimeType") or ""

    def read(self):
        """Await it: the content, as runtime.read_resource gives it."""
        return self.runtime.read_resource(self.__dict__["server"], self["uri"])

    def read_sync(self):
        """read for code that cannot await."""
        return self.runtime.read_resource_sync(self.__dict__["server"], self["uri"])


def content_value(item, server):
    """Returns an item of a tool's or prompt's content that is not text."""
    kind = item.get("type")
    if kind in ("image", "audio") and isinstance(item.get("data"), str):
        return Binary(item)
    if kind == "resource" and isinstance(item.get("resource"), dict):
        return resource_item(item["resource"])
    if kind == "resource_link" and isinstance(item.get("uri"), str):
        return ResourceLink.of(item, server)
    return item


def resource_item(item):
    if isinstance(item.get("blob"), str):
        return BinaryResource(item)
    if not isinstance(item.get("text"), str):
        return item
    text = ResourceText(item["text"])
    text.uri, text.mime_type = item.get("uri") or "", item.get("mimeType") or ""
    return text


def with_attachments(value, items, server):
    """Gives a structured value the content beside it that is not text: at attachments, and where it repeats it."""
    if not hasattr(value, "__dict__"):
        return value
    put_content(value, server, 20)
    if not isinstance(value, dict) or "attachments" not in value:
        value.__dict__["attachments"] = [content_value(item, server) for item in items]
    return value


def put_content(value, server, depth):
    """Puts objects in the place of images and audio inside of a structured value."""
    places = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for place, item in list(places):
        if isinstance(item, dict) and item.get("type") in ("image", "audio") and "mimeType" in item:
            value[place] = content_value(item, server)
        elif depth:
            put_content(item, server, depth - 1)


def resource_value(answer, server):
    """Returns what resources/read answered: the one content, or a list of several."""
    values = [resource_item(item) for item in answer.get("contents") or []]
    return with_raw(values[0] if len(values) == 1 else values, answer)


def prompt_value(answer, server):
    """Returns what prompts/get answered, the content of its messages as values."""
    def content(item):
        if isinstance(item, list):
            return [content(each) for each in item]
        if isinstance(item, dict):
            return item.get("text", "") if item.get("type") == "text" else content_value(item, server)
        return item

    messages = [Record(message, content=content(message.get("content"))) for message in answer.get("messages") or []]
    return with_raw(Record(answer, messages=messages), answer)


# Documentation


class ToolDoc(Record):
    """The documentation of a tool. Printed, it is its signature and description; inputSchema is there too."""

    def __repr__(self):
        if self.get("serverAlias") == "user_tools":
            text = f"# from user_tools import {self.get('tool')}\n{self.get('signature')}"
        else:
            text = f"mcp_{self.get('serverAlias')}.{self.get('signature')}"
        if self.get("tool") != self.get("toolAlias"):
            text = f"# tool {self.get('tool')!r}\n{text}"
        return text + quoted_text(self.get("description") or "")


class Docs(list):
    """Documentation of several tools, one below the other when it is printed."""

    def __repr__(self):
        return "\n\n".join(map(repr, self)) or "[]"


def quoted_text(text):
    """Returns the words of a server as a docstring that they cannot end."""
    if not text:
        return ""
    text = cut(text.strip()).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if text.endswith('"'):
        text = text[:-1] + '\\"'
    return '\n    """' + text.replace("\n", "\n    ") + '"""'


def cut(text, most=4000):
    return text if len(text) <= most else f"{text[:most]}… cut: {len(text)} characters in all"


def full_docs(docs):
    return Docs(ToolDoc(doc) if "signature" in doc else doc for doc in docs)


def tool_help(about):
    return f"{about['doc']}\n\n{cut(about.get('description') or '')}".strip()


def server_help(title, tools, most=100):
    lines = [title, ""]
    for tool in tools[:most]:
        words = " ".join((tool.get("description") or "").split())
        lines.append(f"    {tool['alias']}" + (f": {words[:100]}" if words else ""))
    if len(tools) > most:
        lines.append(f"    and {len(tools) - most} more: runtime.query_tool_docs lists all")
    return "\n".join([*lines, "", "help() of a tool and runtime.stubs show the parameters."])


# Signatures


class Annotation:
    """A type that Python has no object for, such as a dictionary with certain fields."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text

    def __eq__(self, other):
        return self.text == (other.text if isinstance(other, Annotation) else other)

    def __hash__(self):
        return hash(self.text)


PLAIN_TYPES = {"str": str, "int": int, "float": float, "bool": bool, "None": None, "dict": dict, "list": list}


def signature_of(about):
    """Returns the inspect.Signature of a tool."""
    import inspect
    kind, empty = inspect.Parameter, inspect.Parameter.empty
    parameters = []
    for index, each in enumerate(about["parameters"], 1):
        name = each.get("alias") or each["name"]
        parameters.append(kind(
            name if name.isidentifier() else f"arg{index}", kind.POSITIONAL_OR_KEYWORD,
            default=empty if each.get("required") else each.get("default"),
            annotation=annotation_of(each)))
    if about.get("extra"):
        parameters.append(kind("more", kind.VAR_KEYWORD))
    returns = about.get("returns")
    return inspect.Signature(parameters, return_annotation=annotation_of(returns) if returns else empty)


def annotation_of(each):
    try:
        return type_of(each["type"])
    except (KeyError, TypeError):
        return Annotation(each["annotation"])


def type_of(tree):
    import typing
    if isinstance(tree, str):
        return typing.Any if tree == "Any" else PLAIN_TYPES[tree]
    kind, *parts = tree
    if kind == "literal":
        return typing.Literal[tuple(parts)]
    parts = [type_of(part) for part in parts]
    if kind == "union":
        return typing.Union[tuple(parts)]
    return list[parts[0]] if kind == "list" else dict[str, parts[0]]


MORE_CLASSES = Binary, BinaryResource, ResourceText, ResourceLink, ToolDoc, Docs
