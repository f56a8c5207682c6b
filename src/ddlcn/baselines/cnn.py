"""A small convolutional network, trained from scratch on the labelled images alone: the plain deep baseline.

In: pictures (n, H, W) and labels. Out: scores (n, n_classes). Blocks of convolution 3 x 3, batch normalisation (Ioffe
and Szegedy 2015), ReLU and max pooling 2 x 2, then dropout (Srivastava et al. 2014) and one linear layer f. Minimised
over shifted pictures x', by Adam with decoupled weight decay (Loshchilov and Hutter 2019), its step size rising and
falling once ("1cycle", Smith and Topin 2018):

    min  - mean_i log softmax(f(x'_i))_{y_i}

torch is needed to fit and to predict, not to import this file.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlcn.baselines.base import Labels, PictureBaseline
from ddlcn.utils.threads import count_threads
from ddlcn.utils.validation import check_choice, check_count, check_number

Array = NDArray[Any]

# Pictures per batch at prediction.
BATCH = 256


class SmallCNN(PictureBaseline):
    """Three convolution layers and a linear one, trained from scratch (needs torch).

    Parameters
    ----------
    image_shape : (H, W), optional
        Size that pictures are resized to; None means the shape of the first training picture. Each layer halves both
        sides, which must leave a pixel.
    channels : tuple of int
        Output channels of each convolution layer.
    n_steps : int
        Training batches, independent of the number of images: so is the time.
    batch_size : int
        At most the number of images.
    learning_rate : float
        The largest step size of the cycle.
    weight_decay : float
    dropout : float in [0, 1)
        Share of the linear layer's inputs left out at each step.
    shift : int
        Largest random shift of a training picture in pixels, both ways, at each step; its border is repeated.
    device : str
        As torch names it, "cpu" or "cuda"; "auto" means cuda where there is one.
    n_jobs : int, optional
        Threads; None means every core. Another number may change the last digits of the weights.
    random_state : int, Generator or None

    Attributes
    ----------
    weights_ : dict of str to ndarray
        The state of the network, by torch's names.
    losses_ : ndarray (n_steps,)
        Loss of each batch.
    """

    def __init__(
        self,
        image_shape: tuple[int, int] | None = (32, 32),
        *,
        channels: tuple[int, ...] = (32, 64, 128),
        n_steps: int = 1000,
        batch_size: int = 64,
        learning_rate: float = 0.005,
        weight_decay: float = 0.01,
        dropout: float = 0.5,
        shift: int = 2,
        device: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.image_shape = image_shape
        self.channels = channels
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.dropout = dropout
        self.shift = shift
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, pictures: Array, y: Labels) -> None:
        torch = _load_torch()
        channels = self._check_channels(pictures.shape[1:])
        n_steps, batch_size = check_count("n_steps", self.n_steps), check_count("batch_size", self.batch_size)
        rate = check_number("learning_rate", self.learning_rate, above=True)
        decay, shift = check_number("weight_decay", self.weight_decay), check_count("shift", self.shift, 0)
        dropout = check_number("dropout", self.dropout)
        if dropout >= 1.0:
            raise ValueError(f"dropout must be below 1; got {dropout!r}")
        device = _choose_device(torch, self.device)
        rng = np.random.default_rng(self._spawn(2)[1])
        with _use_threads(torch, self.n_jobs), _keep_seeds(torch, device, int(rng.integers(2**31))):
            network = build_network(torch, pictures.shape[1:], channels, len(self.classes_), dropout).to(device)
            pictures = standardise(pictures)
            self.losses_ = train_network(
                torch, network, pictures, y, draw_batches(len(pictures), batch_size, n_steps, rng),
                n_steps, rate, decay, shift, rng, self._make_loss(torch, pictures, y, rng),
            )  # fmt: skip
        self.weights_ = {name: value.cpu().numpy() for name, value in network.state_dict().items()}
        self._n_classes, self._channels = len(self.classes_), channels

    def _make_loss(
        self, torch: Any, pictures: Array, y: Labels, rng: np.random.Generator
    ) -> Callable[[Any, Any, Any], Any]:
        """The loss of a batch, from the network, pictures (n, 1, H, W) and class indices (n,), both tensors.

        `pictures` and y are all that have labels, standardised.
        """
        return lambda network, x, labels: torch.nn.functional.cross_entropy(network(x), labels)

    def _decide(self, pictures: Array) -> Array:
        torch = _load_torch()
        device = _choose_device(torch, self.device)
        with _use_threads(torch, self.n_jobs), torch.inference_mode(), _keep_seeds(torch, device, 0):
            network = build_network(torch, pictures.shape[1:], self._channels, self._n_classes, 0.0)
            network.load_state_dict({name: torch.from_numpy(value) for name, value in self.weights_.items()})
            network = network.to(device).eval()
            batches = (standardise(pictures[start : start + BATCH]) for start in range(0, len(pictures), BATCH))
            scores = [network(torch.from_numpy(batch[:, None]).to(device)).cpu().numpy() for batch in batches]
        return np.concatenate(scores).astype(np.float64)

    def _check_channels(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        channels = tuple(check_count("channels", n) for n in self.channels)
        if not channels or min(shape) < 2 ** len(channels):
            raise ValueError(
                f"channels must be at least one, and pictures of {shape[0]} x {shape[1]} pixels allow "
                f"{min(shape).bit_length() - 1} halvings; got {self.channels!r}"
            )
        return channels


def standardise(pictures: Array) -> NDArray[np.float32]:
    """Pictures (n, H, W) without their mean and of deviation one, each by itself; a constant one becomes zero."""
    centred = pictures - pictures.mean(axis=(1, 2), keepdims=True)
    # 0.01: fainter contrast, in grey values of [0, 1], is noise and not amplified.
    return np.asarray(centred / np.maximum(centred.std(axis=(1, 2), keepdims=True), 0.01), np.float32)


def draw_batches(n: int, size: int, n_steps: int, rng: np.random.Generator) -> Iterator[NDArray[np.intp]]:
    """n_steps batches of indices (min(size, n),), from one shuffle of n after another."""
    size = min(size, n)
    waiting = np.empty(0, np.intp)
    for _ in range(n_steps):
        if len(waiting) < size:
            waiting = np.concatenate([waiting, rng.permutation(n)])
        yield waiting[:size]
        waiting = waiting[size:]


def shift_pictures(pictures: Array, most: int, rng: np.random.Generator) -> Array:
    """Pictures (n, H, W), each moved by up to `most` pixels down or up and right or left, its border repeated."""
    n, height, width = pictures.shape
    down, right = rng.integers(-most, most + 1, (2, n, 1))
    rows = np.clip(np.arange(height) - down, 0, height - 1)
    columns = np.clip(np.arange(width) - right, 0, width - 1)
    return np.asarray(pictures[np.arange(n)[:, None, None], rows[:, :, None], columns[:, None, :]])


def build_network(torch: Any, shape: tuple[int, ...], channels: tuple[int, ...], n_classes: int, dropout: float) -> Any:
    """A torch Sequential: (n, 1, H, W) in, (n, n_classes) out."""
    nn = torch.nn
    layers, n_before = [], 1
    for n in channels:  # no bias: batch normalisation removes it
        layers += [nn.Conv2d(n_before, n, 3, padding=1, bias=False), nn.BatchNorm2d(n), nn.ReLU(), nn.MaxPool2d(2)]
        n_before = n
    height, width = (side >> len(channels) for side in shape)
    return nn.Sequential(*layers, nn.Flatten(), nn.Dropout(dropout), nn.Linear(n_before * height * width, n_classes))


def train_network(
    torch: Any, network: Any, pictures: Array, y: Labels, batches: Iterator[NDArray[np.intp]], n_steps: int,
    rate: float, decay: float, shift: int, rng: np.random.Generator, measure: Callable[[Any, Any, Any], Any],
) -> NDArray[np.float64]:  # fmt: skip
    """Train `network` in place, on its device; returns the loss of every step (n_steps,).

    `measure` is that of `SmallCNN._make_loss`.
    """
    device = next(network.parameters()).device
    optimiser = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=n_steps + 1)
    network.train()
    losses = []
    for batch in batches:
        shifted = shift_pictures(pictures[batch], shift, rng)
        loss = measure(network, torch.from_numpy(shifted[:, None]).to(device), torch.from_numpy(y[batch]).to(device))
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        schedule.step()
        losses.append(loss.detach())
    return np.asarray(torch.stack(losses).cpu().numpy(), np.float64)


def _load_torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise ImportError("this method needs torch: pip install 'ddlcn[torch]'") from error


def _choose_device(torch: Any, device: str) -> str:
    check_choice("device", str(device).split(":")[0], ("auto", "cpu", "cuda"))
    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"


@contextmanager
def _use_threads(torch: Any, n_jobs: int | None) -> Iterator[None]:
    """Use `n_jobs` threads in torch; the number is restored afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count_threads(n_jobs))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _keep_seeds(torch: Any, device: str, seed: int) -> Iterator[None]:
    """Seed torch with `seed`, deterministically; its random state is restored afterwards."""
    on_gpu = device != "cpu"
    with torch.random.fork_rng([torch.device(device)] if on_gpu else []):
        torch.default_generator.manual_seed(seed)
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True):
            yield
