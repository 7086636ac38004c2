"""Small models whose MLP blocks are written as in common libraries, and a float64 oracle with its rounding bound."""

import pytest

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional


class OptLayer(nn.Module):
    """Inlined in a layer, with a residual, as in OPT."""

    def __init__(self, inputs, width):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(inputs, width), nn.Linear(width, inputs)
        self.activation_fn, self.norm = nn.ReLU(), nn.LayerNorm(inputs)

    def forward(self, hidden, attention_mask=None):
        shape = hidden.shape
        hidden = hidden.reshape(-1, hidden.size(-1))
        return (hidden + self.fc2(self.activation_fn(self.fc1(self.norm(hidden))))).view(shape)


class LlamaMlp(nn.Module):
    """Gated, without biases, as in ReLU versions of Llama."""

    def __init__(self, inputs, width, activation=F.relu, both=False):
        super().__init__()
        self.gate_proj = nn.Linear(inputs, width, bias=False)
        self.up_proj = nn.Linear(inputs, width, bias=False)
        self.down_proj = nn.Linear(width, inputs, bias=False)
        self.act_fn, self.both = activation, both

    def forward(self, x):
        up = self.up_proj(x)
        return self.down_proj(self.act_fn(self.gate_proj(x)) * (self.act_fn(up) if self.both else up))


class T5Dense(nn.Module):
    """A module that is the block, with dropout inside, as in T5."""

    def __init__(self, inputs, width):
        super().__init__()
        self.wi, self.wo = nn.Linear(inputs, width, bias=False), nn.Linear(width, inputs, bias=False)
        self.dropout, self.act = nn.Dropout(0.1), nn.ReLU()

    def forward(self, hidden_states):
        hidden_states = self.dropout(self.act(self.wi(hidden_states)))
        return self.wo(hidden_states.to(self.wo.weight.dtype))


class BertLayer(nn.Module):
    """Two modules, one layer in each, as in BERT."""

    class Intermediate(nn.Module):
        def __init__(self, inputs, width):
            super().__init__()
            self.dense = nn.Linear(inputs, width)

        def forward(self, hidden):
            return F.relu(self.dense(hidden))

    class Output(nn.Module):
        def __init__(self, width, inputs):
            super().__init__()
            self.dense, self.LayerNorm = nn.Linear(width, inputs), nn.LayerNorm(inputs)

        def forward(self, hidden, residual):
            return self.LayerNorm(self.dense(hidden) + residual)

    def __init__(self, inputs, width):
        super().__init__()
        self.intermediate, self.output = self.Intermediate(inputs, width), self.Output(width, inputs)

    def forward(self, hidden):
        return self.output(self.intermediate(hidden), hidden)


class Conv1D(nn.Module):
    """A linear layer with a transposed weight, as in GPT-2."""

    def __init__(self, nf, nx):
        super().__init__()
        self.nf, self.nx = nf, nx
        self.weight, self.bias = nn.Parameter(torch.randn(nx, nf) / nx**0.5), nn.Parameter(0.1 * torch.randn(nf))

    def forward(self, x):
        return torch.addmm(self.bias, x.reshape(-1, self.nx), self.weight).view(*x.shape[:-1], self.nf)


class GptMlp(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.c_fc, self.c_proj, self.act = Conv1D(width, inputs), Conv1D(inputs, width), nn.ReLU()

    def forward(self, x):
        return self.c_proj(self.act(self.c_fc(x)))


class FatRelu(nn.Module):
    def __init__(self, threshold):
        super().__init__()
        self.threshold = threshold

    def forward(self, x):
        return torch.where(x > self.threshold, x, torch.zeros_like(x))


class Shifted(nn.Module):
    def forward(self, x):
        return F.relu(x - 0.25)


class Squared(nn.Module):
    def forward(self, x):
        return torch.square(F.relu(x))


class Leaky(nn.Module):
    """Its scores are used twice: the resting ones matter."""

    def __init__(self, inputs, width):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(inputs, width), nn.Linear(width, inputs)

    def forward(self, x):
        z = self.fc1(x)
        return self.fc2(F.relu(z)), z.mean()


def sequential(inputs, width, activation=None, outputs=None, bias=True):
    middle = [activation or nn.ReLU()]
    return nn.Sequential(nn.Linear(inputs, width, bias=bias), *middle, nn.Linear(width, outputs or inputs, bias=bias))


def oracle(block, model, x):
    """The block in float64, and a bound on what float32 sums in any order may differ from it.

    A score of n products and a bias is off by at most (n + 2)·u·(|w|·|x| + |b|), u = 2⁻²⁴, and so on through the block;
    a neuron within that of a jump may fall on either side.
    """
    u = 2.0**-23  # twice the unit roundoff, for the terms of second order
    linear = F.linear
    layers = {name: model.get_submodule(name) for name in block.layers}

    def matrix(name):
        weight = layers[name].weight.detach().double()
        return weight.t() if type(layers[name]).__name__ == "Conv1D" else weight

    def scores(name, x, error):
        w, b = matrix(name), layers[name].bias
        b = torch.zeros(len(w), dtype=torch.float64) if b is None else b.detach().double()
        size = linear(x.abs(), w.abs(), b.abs())
        return linear(x, w, b), (w.shape[1] + 2) * u * size + linear(error, w.abs())

    def activate(z, error):
        kind, tau = block.activation, block.threshold
        value = {"shifted": z - tau, "relu2": z * z}.get(kind, z)
        slope = 2 * z.abs() + error if kind == "relu2" else torch.ones_like(z)
        on, near = z > tau, (z - tau).abs() <= error
        jump = value.abs() * near
        return torch.where(on, value, 0), (slope * error + u * value.abs()) * (on | near) + jump

    x = x.detach().double()
    none = torch.zeros_like(x)
    h, error = scores(block.screened, x, none)
    h, error = activate(h, error)
    if block.gate is not None:
        z, other = scores(block.up, x, none)
        z, other = activate(z, other) if block.gated == "drelu" else (z, other)
        h, error = h * z, error * (z.abs() + other) + h.abs() * other + u * (h * z).abs()
    return scores(block.down, h, error)


def forms(inputs, width, outputs=None):
    """What makes a block of each form that has a kernel on a GPU, by its name; `outputs` are those of "relu"."""
    return {
        "relu": lambda: sequential(inputs, width, outputs=outputs),
        "no-bias": lambda: sequential(inputs, width, bias=False),
        "shifted": lambda: sequential(inputs, width, Shifted()),
        "threshold": lambda: sequential(inputs, width, FatRelu(0.125)),
        "relu2": lambda: sequential(inputs, width, Squared()),
        "reglu": lambda: LlamaMlp(inputs, width),
        "drelu": lambda: LlamaMlp(inputs, width, F.relu, True),
        "conv1d": lambda: GptMlp(inputs, width),
    }
