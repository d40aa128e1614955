"""Parameters with and without weight decay, the learning rate of each group, and every parameter once."""

import copy

import pytest
import torch
from torch import nn

from truestep import parameter_groups
from truestep.errors import BadPart, BadSettings


class Small(nn.Module):
    """Two layers between tied embeddings."""

    def __init__(self, tied=True):
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(4, 1, 8, dropout=0.0) for _ in range(2)])
        self.norm = nn.LayerNorm(4)
        self.head = nn.Linear(4, 7, bias=False)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def named(model, groups):
    """Names of each group's parameters."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    return {group["name"]: [names[parameter] for parameter in group["params"]] for group in groups}


def test_norms_and_biases_do_not_decay():
    model = Small()
    groups = named(model, parameter_groups(model, weight_decay=0.1))
    assert groups["no_decay"] == [name for name, p in model.named_parameters() if p.ndim < 2]
    assert groups["decay"] == [name for name, p in model.named_parameters() if p.ndim == 2]


def test_training_with_groups_is_that_with_groups_written_by_hand():
    torch.manual_seed(0)
    model = Small()
    twin = copy.deepcopy(model)
    ours = torch.optim.AdamW(parameter_groups(model, lr=1e-2, weight_decay=0.3, overrides={"norm": {"lr": 1e-3}}))
    theirs = torch.optim.AdamW(
        [
            {"params": [p for p in twin.parameters() if p.ndim == 2], "weight_decay": 0.3},
            {"params": [p for n, p in twin.named_parameters() if p.ndim < 2 and not n.startswith("norm.")]},
            {"params": list(twin.norm.parameters()), "lr": 1e-3},
        ],
        lr=1e-2,
        weight_decay=0.0,
    )
    tokens = torch.randint(0, 7, (5, 3))
    for _ in range(4):
        for net, optimizer in ((model, ours), (twin, theirs)):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(tokens).flatten(0, 1), tokens.flatten()).backward()
            optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True))


def test_every_parameter_is_in_one_group_once_also_where_it_is_tied():
    model = Small()
    held = [p for group in parameter_groups(model, overrides={"head": {"lr": 1.0}, "embed": {"lr": 2.0}}) for p in
            group["params"]]  # fmt: skip
    assert len(held) == len(set(held)) == len(list(model.parameters()))
    assert set(held) == set(model.parameters())


def test_a_pattern_fits_a_tied_parameter_by_any_of_its_names():
    groups = named(model := Small(), parameter_groups(model, overrides={"head.*": {"lr": 0.5}}))
    assert groups["head.*"] == ["embed.weight"]


def test_the_last_pattern_that_fits_counts():
    model = Small(tied=False)
    groups = {g["name"]: g for g in parameter_groups(model, overrides={"*": {"lr": 1.0}, "head": {"lr": 2.0}})}
    assert groups["head"]["lr"] == 2.0
    assert groups["*"]["lr"] == groups["* no_decay"]["lr"] == 1.0


def test_a_decay_of_a_part_leaves_its_norms_and_biases_out():
    model = Small()
    groups = {g["name"]: g for g in parameter_groups(model, overrides={"layers.*": {"weight_decay": 0.5}})}
    assert groups["layers.*"]["weight_decay"] == 0.5
    assert groups["layers.* no_decay"]["weight_decay"] == 0.0


def test_the_optimizers_own_decay_counts_where_none_is_given():
    groups = {g["name"]: g for g in torch.optim.AdamW(parameter_groups(Small())).param_groups}
    assert groups["decay"]["weight_decay"] == 0.01
    assert groups["no_decay"]["weight_decay"] == 0.0


def test_embeddings_decay_unless_it_is_switched_off():
    model = Small(tied=False)
    assert "embed.weight" in named(model, parameter_groups(model))["decay"]
    assert "embed.weight" in named(model, parameter_groups(model, decay_embeddings=False))["no_decay"]


def test_names_that_the_model_lists_do_not_decay():
    model = Small(tied=False)
    model.no_weight_decay = lambda: {"head.weight"}
    assert "head.weight" in named(model, parameter_groups(model))["no_decay"]


def test_no_decay_takes_patterns_and_one_text():
    model = Small(tied=False)
    for patterns in ("head", ["head"]):
        assert "head.weight" in named(model, parameter_groups(model, no_decay=patterns))["no_decay"]


def test_norm_layers_of_several_dimensions_do_not_decay():
    model = nn.Sequential(nn.Linear(6, 6), nn.Unflatten(1, (2, 3)), nn.LayerNorm((2, 3)))
    assert named(model, parameter_groups(model))["no_decay"] == ["0.bias", "2.weight", "2.bias"]


def test_the_lr_falls_from_the_head_to_the_embeddings():
    model = Small(tied=False)
    rates = {}
    for group in parameter_groups(model, lr=1.0, layer_decay=0.5, layers="layers"):
        for name in named(model, [group])[group["name"]]:
            rates[name] = group["lr"]
    assert rates["embed.weight"] == 0.125
    assert rates["layers.0.linear1.weight"] == 0.25
    assert rates["layers.1.linear1.bias"] == 0.5
    assert rates["norm.weight"] == rates["head.weight"] == 1.0


def test_the_stack_of_layers_is_found_where_it_is_plain():
    model = nn.Sequential()
    model.blocks = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
    model.head = nn.Linear(3, 1)
    rates = {
        g["name"]: g["lr"] for g in parameter_groups(model, lr=1.0, layer_decay=0.1) if "no_decay" not in g["name"]
    }
    assert list(rates) == ["layer 1", "layer 2", "layer 3", "head"]
    assert rates["layer 1"] == pytest.approx(1e-3)


def test_two_stacks_of_layers_are_no_plain_one():
    model = nn.Module()
    model.encoder = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
    model.decoder = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
    with pytest.raises(BadPart, match=r"(?s)ambiguous.*encoder \(3\), decoder \(3\).*layers="):
        parameter_groups(model, lr=1.0, layer_decay=0.5)
    with pytest.raises(BadPart, match=r'(?s)no stack of layers called "blocks".*encoder, decoder'):
        parameter_groups(model, lr=1.0, layer_decay=0.5, layers="blocks")


def test_a_pattern_that_fits_nothing_names_the_nearest():
    with pytest.raises(BadPart, match=r'(?s)no parameter of the model matches "layer\.\*".*write "layers\.\*"'):
        parameter_groups(Small(), overrides={"layer.*": {"lr": 1.0}})
    with pytest.raises(BadPart, match=r'write "embed\.weight"'):
        parameter_groups(Small(), no_decay=["embed.wieght"])


def test_names_are_plain_in_a_compiled_model():
    model = torch.compile(Small(tied=False), backend="eager")
    groups = {g["name"]: len(g["params"]) for g in parameter_groups(model, overrides={"head.*": {"lr": 1.0}})}
    assert groups["head.*"] == 1


def test_frozen_parameters_are_kept_and_train_once_they_are_unfrozen():
    model = nn.Linear(2, 1)
    model.weight.requires_grad_(False)
    optimizer = torch.optim.AdamW(parameter_groups(model, lr=0.1))
    before = model.weight.clone()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert torch.equal(model.weight, before)
    model.weight.requires_grad_(True)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert not torch.equal(model.weight, before)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"lr": -1.0}, "lr must be .* got -1.0"),
        ({"weight_decay": True}, "weight_decay must be .* got True"),
        ({"layer_decay": 0.0, "lr": 1.0}, "layer_decay must be .* got 0.0"),
        ({"layer_decay": 0.5}, "without lr"),
        ({"overrides": {"head": {"lr": float("nan")}}}, 'lr of "head" must be .* got nan'),
        ({"overrides": [("head", {"lr": 1e-3})]}, r"overrides must be a dict of options by pattern, got \[.*"),
        ({"overrides": {"head": 1e-3}}, r'the options of "head" must be a dict .* got 0\.001'),
        ({"overrides": {"head": {"params": []}}}, 'the options of "head"'),
    ],
)
def test_options_that_mean_nothing_are_refused(options, match):
    with pytest.raises(BadSettings, match=match):
        parameter_groups(Small(), **options)


def test_models_without_parameters_or_without_shapes_are_refused():
    with pytest.raises(BadPart, match="no parameters"):
        parameter_groups(nn.ReLU())
    with pytest.raises(BadPart, match="no shape yet"):
        parameter_groups(nn.LazyLinear(3))
