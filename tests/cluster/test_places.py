"""Whether a cluster has room for a run, what would fit, and whether its machines have the same software."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.basics.errors import ConfigError
from muarl.workers.cluster.machines import ProcessGroup, bundles, check_fits, check_same, fits, named, probe

ASKED = st.tuples(st.integers(1, 6), st.sampled_from([0.5, 1, 2]), st.sampled_from([0, 0.5, 1]))
PARTS = [
    ProcessGroup("learner", 2, 1, 1.0),
    ProcessGroup("sampler", 4, 1, 1.0, setting="cluster.samplers"),
    ProcessGroup("rollout worker", 8, 2, setting="cluster.rollout_workers"),
]


def test_what_fits() -> None:
    assert len(bundles(PARTS)) == 14 and bundles(PARTS)[0] == {"CPU": 1, "GPU": 1.0}
    assert fits(PARTS, [{"CPU": 22, "GPU": 8}])
    check_fits(PARTS, [{"CPU": 12, "GPU": 4}, {"CPU": 10, "GPU": 2}])
    assert not fits([ProcessGroup("learner", 1, 1, 2)], [{"CPU": 8, "GPU": 1}, {"CPU": 8, "GPU": 1}]), (
        "not across machines"
    )
    assert fits([ProcessGroup("worker", 4, 0.5)], [{"CPU": 2}]) and not fits(
        [ProcessGroup("worker", 5, 0.5)], [{"CPU": 2}]
    )
    assert not fits([ProcessGroup("worker", 1, 1, memory=2**30)], [{"CPU": 2, "memory": 2**29}])


def test_too_small_a_cluster_is_told_with_what_would_fit() -> None:
    with pytest.raises(ConfigError) as caught:
        check_fits(PARTS, [{"CPU": 10, "GPU": 3}, {"CPU": 4, "GPU": 1, "memory": 2**31}])
    text = str(caught.value)
    assert "8 x rollout worker of 2 CPUs" in text and "2 machines have 10 CPUs and 3 GPUs" in text
    assert "2.0 GiB of memory" in text
    advised = {k: int(v) for k, v in re.findall(r"(cluster\.\w+)=(\d+)", text)}
    assert advised == {"cluster.samplers": 2, "cluster.rollout_workers": 4}
    smaller = [ProcessGroup(p.name, advised.get(p.setting, p.count), p.cpus, p.gpus) for p in PARTS]
    check_fits(smaller, [{"CPU": 10, "GPU": 3}, {"CPU": 4, "GPU": 1}])


@pytest.mark.parametrize(
    ("parts", "machines", "said"),
    [
        ([ProcessGroup("learner", 1, 1, 1)], [{"CPU": 4}], "Not even one learner"),
        (
            [ProcessGroup("learner", 1, 2), ProcessGroup("sampler", 3, 1, setting="s")],
            [{"CPU": 2}],
            "Not even one process of each",
        ),
        ([ProcessGroup("learner", 1, 2)], [], "has nothing|have nothing"),
    ],
)
def test_where_nothing_would_fit(parts: list[ProcessGroup], machines: list[dict[str, float]], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check_fits(parts, machines)


@given(
    st.lists(
        st.tuples(st.integers(1, 6), st.sampled_from([0.5, 1, 2]), st.sampled_from([0, 0.5, 1])), min_size=1, max_size=4
    ),
    st.lists(st.tuples(st.integers(0, 16), st.integers(0, 4)), min_size=1, max_size=4),
)
def test_what_is_advised_fits(asked: list[tuple[int, float, float]], had: list[tuple[int, int]]) -> None:
    parts = [ProcessGroup(f"p{n}", count, cpus, gpus, setting=f"p{n}") for n, (count, cpus, gpus) in enumerate(asked)]
    machines = [{"CPU": float(c), "GPU": float(g)} for c, g in had]
    try:
        check_fits(parts, machines)
    except ConfigError as problem:
        advised = {k: int(v) for k, v in re.findall(r"(p\d+)=(\d+)", str(problem))}
        if advised:
            smaller = [ProcessGroup(p.name, advised.get(p.name, p.count), p.cpus, p.gpus) for p in parts]
            assert fits(smaller, machines) and any(s.count < p.count for s, p in zip(smaller, parts, strict=True))
    else:
        total = {k: sum(m[k] for m in machines) for k in ("CPU", "GPU")}
        assert sum(p.count * p.cpus for p in parts) <= total["CPU"]
        assert sum(p.count * p.gpus for p in parts) <= total["GPU"]


def test_machines_with_other_software_are_named() -> None:
    here = probe()()
    assert here["muarl"] != "none" and len(here["source"]) == 12 and here["torch"] != "none"
    check_same(here, [("the node a", dict(here)), ("the node b", dict(here))])
    for key, said in (("muarl", "muarl 9.9"), ("torch", "torch 9.9"), ("ray", "ray 9.9"), ("python", "python 9.9")):
        with pytest.raises(ConfigError, match=f"the node b has {said}.*{here[key]}"):
            check_same(here, [("the node a", here), ("the node b", here | {key: "9.9"})])
    with pytest.raises(ConfigError, match=f"the node b has muarl .* with other source files.*{here['source']}"):
        check_same(here, [("the node b", here | {"source": "0" * 12})])
    with pytest.raises(ConfigError, match=r"the node a has muarl 9\.9"):  # two nodes of one machine: one name
        check_same(here, [("the node a", here | {"muarl": "9.9"}), ("the node a", here)])
    with pytest.raises(ConfigError, match="no muarl that can be imported .No module named muarl"):
        check_same(here, [("the node b", {"muarl": "none", "problem": "No module named muarl"})])
    assert named({"NodeManagerAddress": "10.0.0.1", "NodeManagerHostname": "big"}) == "the node big (10.0.0.1)"
    assert named({"NodeManagerAddress": "10.0.0.1", "NodeManagerHostname": "10.0.0.1"}) == "the node 10.0.0.1"
