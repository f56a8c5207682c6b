"""The server: one model, a page, `POST /predict`, `POST /explain`. Uploads are neither written to disk nor kept.

Images are predicted by as many threads as there are cores; later requests wait. Everything that a browser needs is
served from here, so it works offline.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from html import escape
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from ddlcn.classifier import DDLCNClassifier, load_model
from ddlcn.utils.threads import count_threads
from ddlcn.web.explanation import explain_image
from ddlcn.web.uploads import Limits, RefusedError, open_upload
from ddlcn.workflows.predict import Prediction, predict_each

try:
    import anyio
    from fastapi import FastAPI, File, Query, Request, UploadFile
    from fastapi.responses import HTMLResponse, JSONResponse, Response
    from pydantic import BaseModel
    from starlette.formparsers import MultiPartParser
    from starlette.middleware.trustedhost import TrustedHostMiddleware
except ImportError as error:
    raise ImportError("the server needs fastapi and uvicorn: pip install 'ddlcn[serve]'") from error

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(self), microphone=(), geolocation=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
STATIC = {"page.js": "text/javascript", "page.css": "text/css"}


class Guess(BaseModel):
    """A class and its probability."""

    label: str
    probability: float


class Answer(BaseModel):
    """The prediction for one image: a label (null if it looks like no class) and guesses, or an error."""

    name: str
    label: str | None = None
    known: bool = False
    top: list[Guess] = []
    error: str | None = None


def create_app(
    model: DDLCNClassifier, name: str = "model", host: str = "127.0.0.1", limits: Limits | None = None
) -> FastAPI:
    """The application around a fitted model.

    Parameters
    ----------
    model : DDLCNClassifier
    name : str
        What the page calls the model.
    host : str
        The address that it is bound to; requests for another host are refused, which prevents DNS rebinding.
    limits : Limits, optional
    """
    limits = limits or Limits()
    # Uploads stay in memory: Starlette would write files beyond a megabyte to a temporary file.
    MultiPartParser.spool_max_size = limits.max_bytes + 1
    model.calibrator_.find(1)
    gate = anyio.CapacityLimiter(count_threads(model.n_jobs))
    app = FastAPI(title=f"ddlcn: {name}", docs_url=None, redoc_url=None, version="1")
    hosts = ["127.0.0.1", "localhost", host]
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=["*"] if host in ("0.0.0.0", "::") else hosts)

    @app.middleware("http")
    async def guard(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        """Check the declared size and the origin; set the headers of every response."""
        length, origin = request.headers.get("content-length", "0"), request.headers.get("origin")
        response: Response
        if not length.isdigit() or int(length) > limits.max_request_bytes:
            response = JSONResponse({"error": "the upload is too large"}, 413)
        elif request.method == "POST" and not request.headers.get("content-length"):
            response = JSONResponse({"error": "the upload has no Content-Length"}, 411)
        elif origin is not None and origin.split("://")[-1] != request.headers.get("host"):
            response = JSONResponse({"error": "requests from other origins are refused"}, 403)
        else:
            response = await call_next(request)
        response.headers.update(HEADERS)
        return response

    async def work(function: Callable[..., Any], *arguments: Any) -> Any:
        """Run in a thread, when one is free, within the time limit."""
        with anyio.fail_after(limits.max_seconds):
            return await anyio.to_thread.run_sync(function, *arguments, limiter=gate, abandon_on_cancel=True)

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    def index() -> str:
        return (
            _read("templates", "index.html")
            .replace("{{ name }}", escape(name))
            .replace("{{ n_classes }}", str(len(model.classes_)))
        )

    @app.get("/static/{file}", include_in_schema=False)
    def static(file: str) -> Response:
        if file not in STATIC:
            return JSONResponse({"error": "there is no such file"}, 404)
        return Response(_read("static", file), media_type=STATIC[file])

    @app.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    def docs(request: Request) -> str:
        address = escape(str(request.base_url).rstrip("/"))
        page = _read("templates", "docs.html").replace("{{ name }}", escape(name))
        return page.replace("{{ address }}", address)

    @app.get("/health")
    def health() -> dict[str, Any]:
        """The status of the server, and the classes of its model."""
        return {"status": "ok", "classes": [str(label) for label in model.classes_]}

    @app.post("/predict")
    async def predict(
        images: Annotated[list[UploadFile], File(description="One or more image files.")],
        top: Annotated[int, Query(ge=1, description="Number of classes to return.")] = 3,
        reject: Annotated[bool, Query(description="Whether images that look like no class get no label.")] = False,
    ) -> list[Answer]:
        """Predict images. One that cannot be read gets an error; the others are predicted."""
        if len(images) > limits.max_images:
            return [Answer(name="", error=f"more than {limits.max_images} images at once")]
        answers = []
        for image in images:
            filename = image.filename or "image"
            try:
                answers.append(await work(_predict, model, await image.read(), filename, limits, top, reject))
            except RefusedError as refusal:
                answers.append(Answer(name=filename, error=str(refusal)))
            except TimeoutError:
                answers.append(Answer(name=filename, error="it took too long"))
        return answers

    @app.post("/explain")
    async def explain(image: Annotated[UploadFile, File(description="One image file.")]) -> JSONResponse:
        """Heat maps (as data addresses), atoms and training patches of the winner and the runner-up."""
        try:
            return JSONResponse(await work(_explain, model, await image.read(), limits))
        except ValueError as refusal:  # also raised for a model whose decisions cannot be split
            return JSONResponse({"error": str(refusal)}, 422)
        except TimeoutError:
            return JSONResponse({"error": "it took too long"}, 503)

    return app


def _predict(model: DDLCNClassifier, content: bytes, name: str, limits: Limits, top: int, reject: bool) -> Answer:
    (prediction,) = predict_each(model, [(name, open_upload(content, limits))], n_jobs=1)
    if prediction.error:
        raise RefusedError(prediction.error)
    return _to_answer(prediction, top, reject)


def _to_answer(prediction: Prediction, top: int, reject: bool) -> Answer:
    guesses = [Guess(label=str(label), probability=p) for label, p in prediction.ranking[:top]]
    label = None if reject and not prediction.is_known else guesses[0].label
    return Answer(name=prediction.name, label=label, known=prediction.is_known, top=guesses)


def _explain(model: DDLCNClassifier, content: bytes, limits: Limits) -> dict[str, Any]:
    shown = explain_image(model, open_upload(content, limits))
    for side in shown["sides"]:
        side["label"] = str(side["label"])
        for atom in side["atoms"]:
            atom["glyph"] = str(atom["glyph"])
            atom["learned_from"] = None if atom["learned_from"] is None else str(atom["learned_from"])
            atom["near"] = [[address, str(label)] for address, label in atom["near"]]
    shown["listed"] = [[str(label), score] for label, score in shown["listed"]]
    return shown


def _read(folder: str, file: str) -> str:
    return resources.files("ddlcn.web").joinpath(folder, file).read_text(encoding="utf-8")


def listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections; OSError that says what to do if the address cannot be had."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        raise OSError(
            f"cannot listen on {host}, port {port} ({error.strerror or error}): choose another --port or --host"
        ) from None


def run_server(
    path: Path, host: str, port: int, limits: Limits | None = None, tell: Callable[[str], None] = lambda _: None
) -> None:
    """Serve a model file until the process is stopped; `tell` hears of the address once it answers."""
    import uvicorn

    with listen(host, port) as listening:  # before the model is read: an address that is taken is told at once
        model = load_model(path)
        config = uvicorn.Config(
            create_app(model, path.name, host, limits), host=host, port=port, log_level="warning", server_header=False,
            timeout_graceful_shutdown=5, limit_concurrency=200,
        )  # fmt: skip
        tell(f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]} (Ctrl+C stops it)")
        uvicorn.Server(config).run(sockets=[listening])
