"""The display function: pictures, figures and the rest of what a notebook shows.

Nothing here imports what the code has not imported: a value tells by its methods, or the module of its type, what it
can be shown as.
"""
from __future__ import annotations

import io
import os
import sys

from .errors import MCPError
from .tracebacks import describe
from .values import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .calls import Calls
    from .host import Host

MAX_SIDE = 4000  # pixels of what is drawn here: the host shows less, and takes no more than 16 million
PICTURES = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
numbers: dict[str, int] = {}


def display(calls: Calls, value: Any) -> None:
    if not draws(calls, value):
        print(shown(value))
        show_parts(calls, value)


def show_parts(calls: Calls, value: Any) -> None:
    """Shows the pictures that are in a tool's answer."""
    if calls.has_content:
        from .content import binaries_in
        for part in binaries_in(value):
            if part is not value:
                draws(calls, part)


def draws(calls: Calls, value: Any) -> bool:
    """Shows a value as a picture, or reports why it cannot be drawn. Returns False if it should be shown as text."""
    try:
        return show_picture(calls.host, value)
    except MCPError:
        raise
    except Exception as error:
        of_plotly = is_from(type(value), "plotly", "to_image")
        # As text it would be all of its data.
        instead = '; keep it with .write_html("/workspace/out/figure.html")' if of_plotly else ""
        print(f"display: this {type(value).__name__} cannot be drawn: {describe(error)}{instead}", file=sys.stderr)
        return of_plotly


def show_picture(host: Host, value: Any) -> bool:
    """Shows a value as a picture. Returns False if it is not one."""
    kind = type(value)
    if isinstance(value, type):
        return False
    figure = figure_of(value)
    if figure is not None:
        if is_empty(figure):
            return False
        send(host, next_name("figure"), draw(figure))
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot:
            pyplot.close(figure)  # or it would be shown again at the end
        return True
    if is_from(kind, "plotly", "to_image"):
        send(host, next_name(), value.to_image(format="png"))
        return True
    if is_from(kind, "PIL", "save"):
        send(host, next_name(), encode_image(value))
        return True
    return show_bundle(host, value, bundle_of(value))


def is_from(kind: type, package: str, method: str) -> bool:
    """Reports whether a class is of a package, or derived from one of it, without importing the package."""
    return hasattr(kind, method) and any(base.__module__.partition(".")[0] == package for base in kind.__mro__)


def next_name(what: str = "picture") -> str:
    numbers[what] = numbers.get(what, 0) + 1
    return f"{what}-{numbers[what]}"


def send(host: Host, name: str, data: bytes, extension: str | None = None) -> None:
    import base64
    host.ask("display", {"name": f"{name}.{extension or 'png'}", "data": base64.b64encode(data).decode()})


# Figures of matplotlib


def figure_of(value: Any) -> Any:
    """Returns the figure that a value of matplotlib's is, or is in; None if it is no figure and no axes."""
    kind = type(value)
    if is_from(kind, "matplotlib", "savefig"):
        return value
    if is_from(kind, "matplotlib", "get_figure") and hasattr(kind, "plot"):
        return value.get_figure()
    if hasattr(kind, "savefig") and is_from(type(getattr(value, "figure", None)), "matplotlib", "savefig"):
        return value.figure  # a grid of seaborn's
    if type(value).__name__ == "ndarray" and value.dtype == object and value.size and value.size <= 1000:
        figures = {id(figure): figure for figure in map(figure_of, value.flat)}  # what plt.subplots and hist give
        if len(figures) == 1:
            return figures.popitem()[1]
    return None


def is_empty(figure: Any) -> bool:
    return len(figure.get_children()) < 2  # there is always the background


def draw(figure: Any) -> bytes:
    """Returns a figure as PNG, trimmed as in a notebook."""
    out = io.BytesIO()
    width, height = figure.get_size_inches()
    dpi = min(figure.dpi, MAX_SIDE / max(width, height, 0.01))
    figure.savefig(out, format="png", dpi=dpi, bbox_inches="tight")
    return out.getvalue()


def show_figures(host: Host, managers: Any) -> None:
    """Shows the open figures of pyplot, in order, and closes them."""
    for number in list(managers.figs):
        figure = managers.figs[number].canvas.figure
        try:
            if not is_empty(figure):
                send(host, next_name("figure"), draw(figure))
        except Exception as error:
            print(f"figure {number} cannot be drawn: {describe(error)}", file=sys.stderr)
        managers.destroy(number)


# Images and what shows itself


def encode_image(image: Any) -> bytes:
    """Returns an image of PIL's as PNG, or as the JPEG that it was read from."""
    out = io.BytesIO()
    if max(image.size) > MAX_SIDE:
        image = image.copy()
        image.thumbnail((MAX_SIDE, MAX_SIDE))
    if image.mode not in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):
        image = image.convert("RGBA" if "A" in image.mode or "a" in image.mode else "RGB")
    jpeg = getattr(image, "format", None) == "JPEG" and image.mode in ("L", "RGB")
    image.save(out, "JPEG" if jpeg else "PNG", **({"quality": 92} if jpeg else {}))
    return out.getvalue()


def bundle_of(value: Any) -> dict[str, Any]:
    """Returns a value's representations by media type, as IPython asks for them."""
    bundle = {}
    whole = getattr(value, "_repr_mimebundle_", None)
    if callable(whole):
        given = whole()
        given = given[0] if isinstance(given, tuple) else given
        bundle.update(given if isinstance(given, dict) else {})
    for name, kind in (("png", "image/png"), ("jpeg", "image/jpeg"), ("svg", "image/svg+xml"),
                       ("markdown", "text/markdown")):
        method = getattr(value, f"_repr_{name}_", None)
        if kind not in bundle and callable(method):
            data = method()
            bundle[kind] = data[0] if isinstance(data, tuple) else data
    return bundle


def show_bundle(host: Host, value: Any, bundle: dict[str, Any]) -> bool:
    for kind, extension in PICTURES.items():
        data = bundle.get(kind)
        if data:
            if isinstance(data, str):
                import base64
                data = base64.b64decode(data)
            send(host, next_name(), data, extension)
            return True
    if bundle.get("image/svg+xml"):
        show_svg(host, bundle["image/svg+xml"])
        return True
    if isinstance(bundle.get("text/markdown"), str):
        print(bundle["text/markdown"])
        return True
    return False


def show_svg(host: Host, svg: str | bytes) -> None:
    """Keeps the SVG, and shows it as PNG if cairosvg is there."""
    import base64
    data = svg.encode() if isinstance(svg, str) else svg
    name = next_name()
    try:
        import cairosvg  # type: ignore[import-not-found]
    except Exception:  # it is not there, or its C library is not
        cairosvg = None
    host.ask("display", {"name": name + ".svg", "data": base64.b64encode(data).decode(), "drawn": bool(cairosvg)})
    if not cairosvg:
        return
    try:
        png = cairosvg.svg2png(bytestring=data)
    except Exception as error:
        print(f"display: {name}.svg is kept as a file and not shown: cairosvg: {describe(error)}", file=sys.stderr)
    else:
        send(host, name, png)


# Files


def open_files(folder: str) -> None:
    """Makes the code's files readable for the host, which is another user, unless it is root."""
    for place, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(place, name)
            try:
                mode = os.lstat(path).st_mode
                needed = 0o555 if name in folders else 0o444
                if mode & 0o170000 != 0o120000 and mode & needed != needed:
                    os.chmod(path, mode & 0o7777 | needed)
            except OSError:
                pass  # the host says what it could not read
