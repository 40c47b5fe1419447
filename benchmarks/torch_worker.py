"""PyTorch's side of `torch_encoder`, in a process without JAX: python torch_worker.py FOLDER.

Reads weights and tokens from FOLDER, leaves its gradient there, then computes it again for every line on stdin.
"""

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

SCORE_LIMIT = 10.0
INSIDE = {"inputs": "weight_ih_l0", "recurrent": "weight_hh_l0", "inputs_bias": "bias_ih_l0"}  # nn.LSTM's own


def main(folder: Path) -> None:
    """Answer until stdin ends."""
    device = (folder / "device").read_text()
    torch.set_num_threads(int((folder / "threads").read_text()))
    initial = {name: torch.tensor(x, device=device) for name, x in np.load(folder / "weights.npz").items()}
    tokens = torch.tensor(np.load(folder / "tokens.npy"), device=device)
    width = initial["query_in"].shape[0]
    lstm = torch.nn.LSTM(width, width, batch_first=True).to(device)
    weights = adopt(lstm, initial)
    gradients = gradient(lstm, weights, tokens)
    np.savez(folder / "gradient.npz", **{name: x.cpu().numpy() for name, x in gradients.items()})
    print(torch.__version__, flush=True)
    for _ in sys.stdin:
        gradient(lstm, weights, tokens)
        print("done", flush=True)


def adopt(lstm: torch.nn.LSTM, initial: dict[str, Any]) -> dict[str, Any]:
    """The given weights as parameters, those of the LSTM inside it."""
    lstm.bias_hh_l0.data.zero_()
    lstm.bias_hh_l0.requires_grad_(False)  # ours has one bias
    for name, inside in INSIDE.items():
        getattr(lstm, inside).data.copy_(initial[name])
    return {name: getattr(lstm, INSIDE[name]) if name in INSIDE else x.requires_grad_() for name, x in initial.items()}


def gradient(lstm: torch.nn.LSTM, weights: dict[str, Any], tokens: Any) -> dict[str, Any]:
    """Of the loss, by the weights' names."""
    gradients = torch.autograd.grad(loss(lstm, weights, tokens), list(weights.values()))
    if tokens.is_cuda:
        torch.cuda.synchronize()
    return dict(zip(weights, gradients, strict=True))


def loss(lstm: torch.nn.LSTM, weights: dict[str, Any], tokens: Any) -> Any:
    """The mean square of every prefix's summary."""
    embedded = functional.linear(tokens, weights["embedding"], weights["embedding_bias"])
    hidden, _ = lstm(functional.gelu(embedded, approximate="tanh"))
    score = hidden @ (weights["query_in"] @ weights["keys"]) / math.sqrt(hidden.shape[-1])
    weight = torch.exp(torch.clip(score, -SCORE_LIMIT, SCORE_LIMIT)).unsqueeze(-1)
    pooled = torch.cumsum(weight * hidden, 1) / torch.cumsum(weight, 1)
    gated = pooled * torch.sigmoid(weights["gate"] @ weights["query_out"])
    return torch.mean(torch.cat([gated, hidden], -1) ** 2)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
