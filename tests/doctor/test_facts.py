"""Facts from the kernel, read from files as they are on other machines, and facts from torch."""

import os
import sys
import textwrap
from types import SimpleNamespace

import pytest

from truestep.doctor.readers import cgroups, folders, graphics, inside_torch, system
from truestep.doctor.readers.ask_torch import ask, read
from truestep.doctor.readers.compilers import compiler
from truestep.doctor.readers.folders import folder
from truestep.doctor.readers.variables import variables

MIB, GIB = 2**20, 2**30
VERSION_2 = "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
VERSION_1 = """31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro
32 31 0:29 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct
33 31 0:30 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory
"""


def tree(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


class TestCgroups:
    def test_version_2_in_a_container(self, tmp_path):
        root = tree(
            tmp_path,
            {
                "proc/self/mountinfo": VERSION_2,
                "proc/self/cgroup": "0::/\n",
                "sys/fs/cgroup/cpu.max": "150000 100000\n",
                "sys/fs/cgroup/memory.max": f"{4 * GIB}\n",
                "sys/fs/cgroup/memory.current": f"{3 * GIB}\n",
                "sys/fs/cgroup/memory.stat": f"anon 5\ninactive_file {GIB}\n",
            },
        )
        assert cgroups.quota(root) == 1.5
        assert cgroups.memory(root) == (4 * GIB, 2 * GIB)

    def test_version_2_of_a_batch_system_limits_a_group_above(self, tmp_path):
        root = tree(
            tmp_path,
            {
                "proc/self/mountinfo": VERSION_2,
                "proc/self/cgroup": "0::/slurm/job_7/step_0\n",
                "sys/fs/cgroup/slurm/job_7/step_0/cpu.max": "max 100000\n",
                "sys/fs/cgroup/slurm/job_7/step_0/memory.max": "max\n",
                "sys/fs/cgroup/slurm/job_7/cpu.max": "800000 100000\n",
                "sys/fs/cgroup/slurm/job_7/memory.max": f"{8 * GIB}\n",
                "sys/fs/cgroup/slurm/memory.max": f"{64 * GIB}\n",
            },
        )
        assert cgroups.quota(root) == 8.0
        assert cgroups.memory(root) == (8 * GIB, None)

    def test_version_1_in_a_container_that_sees_the_names_of_its_host(self, tmp_path):
        root = tree(
            tmp_path,
            {
                "proc/self/mountinfo": VERSION_1,
                "proc/self/cgroup": "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "200000\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{2 * GIB}\n",
                "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{GIB}\n",
                "sys/fs/cgroup/memory/memory.stat": "total_inactive_file 0\n",
            },
        )
        assert cgroups.quota(root) == 2.0
        assert cgroups.memory(root) == (2 * GIB, GIB)

    def test_version_1_without_limits(self, tmp_path):
        root = tree(
            tmp_path,
            {
                "proc/self/mountinfo": VERSION_1,
                "proc/self/cgroup": "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
                "sys/fs/cgroup/memory/memory.usage_in_bytes": "1\n",
            },
        )
        assert cgroups.quota(root) is None
        assert cgroups.memory(root) == (None, None)

    def test_a_machine_without_proc(self, tmp_path):
        assert cgroups.quota(tmp_path) is None
        assert cgroups.memory(tmp_path) == (None, None)


class TestMachine:
    def test_memory_of_the_kernel(self, tmp_path):
        root = tree(
            tmp_path, {"proc/meminfo": "MemTotal:       1048576 kB\nMemAvailable:    524288 kB\nHugePages_Total: 0\n"}
        )
        memory = system.memory(root)
        assert (memory.total, memory.available, memory.limit, memory.free) == (GIB, GIB // 2, None, GIB // 2)

    def test_a_limit_above_the_memory_there_is_limits_nothing(self, tmp_path):
        root = tree(
            tmp_path,
            {
                "proc/meminfo": "MemTotal:       1048576 kB\nMemAvailable:    524288 kB\n",
                "proc/self/mountinfo": VERSION_2,
                "proc/self/cgroup": "0::/\n",
                "sys/fs/cgroup/memory.max": f"{2 * GIB}\n",
                "sys/fs/cgroup/memory.current": "0\n",
            },
        )
        assert system.memory(root).limit is None

    @pytest.mark.parametrize(
        ("text", "name", "bf16"),
        [
            ("model name\t: AMD EPYC 7763\nflags\t\t: fpu avx2\n", "AMD EPYC 7763", ()),
            (
                "model name\t: Intel Xeon\nflags\t: fpu avx512_bf16 amx_bf16\n",
                "Intel Xeon",
                ("avx512_bf16", "amx_bf16"),
            ),
            ("processor\t: 0\nFeatures\t: fp asimd bf16 i8mm\n", None, ("bf16",)),
        ],
    )
    def test_processors(self, tmp_path, text, name, bf16):
        found = system.processors(tree(tmp_path, {"proc/cpuinfo": text}))
        assert found.bf16 == bf16
        assert name is None or found.name == name
        assert found.usable == found.allowed <= found.present

    def test_two_threads_of_a_core_are_one_core(self, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
        place = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
        root = tree(tmp_path, {place.format(number): f"{number % 2},{number % 2 + 2}\n" for number in range(4)})
        found = system.processors(root)
        assert (found.allowed, found.cores, found.useful) == (4, 2, 2)

    def test_container(self, tmp_path, monkeypatch):
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        assert not system.in_container(tmp_path)
        (tmp_path / ".dockerenv").touch()
        assert system.in_container(tmp_path)


class TestGraphics:
    def test_gpus_on_the_bus(self, tmp_path):
        devices = {"01": ("0x030200", "0x10de"), "02": ("0x030000", "0x10de"), "03": ("0x020000", "0x10de")}
        devices["04"] = ("0x030000", "0x1002")
        for number, (kind, vendor) in devices.items():
            folder = f"sys/bus/pci/devices/0000:{number}:00.0"
            tree(tmp_path, {f"{folder}/class": f"{kind}\n", f"{folder}/vendor": f"{vendor}\n"})
        tree(
            tmp_path, {"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu\n"}
        )
        found = graphics.graphics(tmp_path)
        assert (found.nvidia, found.amd, found.driver, found.reached) == (2, 1, "570.86.15", False)

    def test_a_machine_without_a_list(self, tmp_path):
        assert graphics.graphics(tmp_path).nvidia is None


class TestFolders:
    def test_here(self, tmp_path):
        found = folder("runs", tmp_path)
        assert found.failure is None
        assert found.free > 0 < found.write_speed
        assert list(tmp_path.iterdir()) == []

    def test_one_that_is_not_made_yet_is_judged_by_the_one_above(self, tmp_path):
        found = folder("runs", tmp_path / "not" / "yet")
        assert found.path == str(tmp_path / "not" / "yet")
        assert found.failure is None
        assert list(tmp_path.iterdir()) == []

    def test_a_working_folder_that_was_removed(self, tmp_path, monkeypatch):
        (tmp_path / "gone").mkdir()
        monkeypatch.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()
        assert folder("runs", folders.Path(".")).failure == "the working folder was removed"

    @pytest.mark.skipif(sys.platform != "linux", reason="names of bytes")
    def test_a_name_that_is_no_text(self, tmp_path):
        place = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
        assert folder("runs", folders.Path(place)).path == f"{tmp_path}/\N{REPLACEMENT CHARACTER}"

    def test_a_file_is_no_folder(self, tmp_path):
        (tmp_path / "runs").write_text("")
        assert folder("runs", tmp_path / "runs" / "lab").failure == f"{tmp_path / 'runs'} is a file"

    @pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
    def test_one_that_refuses(self):
        found = folder("runs", folders.Path("/proc"))
        assert found.failure is not None
        assert found.system == "proc"
        assert found.free is None

    def test_file_system_is_that_of_the_deepest_mount(self, tmp_path):
        root = tree(
            tmp_path,
            {
                "proc/self/mountinfo": "27 1 254:0 / / rw - ext4 /dev/vda rw\n"
                "28 27 0:9 / /data rw - nfs4 server:/x rw\n"
                "29 27 0:9 / /data/my\\040runs rw - xfs /dev/vdb rw\n"
            },
        )
        for place, kind in {"/data/sets": "nfs4", "/database": "ext4", "/data/my runs/a": "xfs"}.items():
            assert folders.file_system(folders.Path(place), root) == kind


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({"CUDA_VISIBLE_DEVICES": "", "PATH": "/bin"}, (("CUDA_VISIBLE_DEVICES", ""),)),
        ({"TORCHINDUCTOR_REDIS_URL": "redis://me:secret@host"}, (("TORCHINDUCTOR_REDIS_URL", "(not shown)"),)),
        ({"CUDA_VERSION": "12.8", "TORCH_HOME": "/cache"}, ()),
    ],
)
def test_variables(environment, found):
    assert variables(environment) == found


@pytest.mark.skipif(sys.platform != "linux", reason="tries compilers on Linux")
class TestCompiler:
    def test_of_a_variable_that_is_not_there(self, monkeypatch):
        monkeypatch.setenv("CXX", "ccache g++")
        found = compiler()
        assert found.path is None
        assert found.failure == 'CXX is "ccache g++", but no program has that name'

    def test_that_fails_is_quoted(self, tmp_path, monkeypatch):
        script = tmp_path / "g++"
        script.write_text(
            "#!/bin/sh\n"
            '[ "$1" = --version ] && echo "g++ (Some 1.2) 12.2.0" && exit 0\n'
            'echo "small.cpp:1:10: fatal error: Python.h: No such file or directory" >&2; exit 1\n'
        )
        script.chmod(0o755)
        monkeypatch.setenv("CXX", str(script))
        found = compiler()
        assert (found.version, found.failure) == ("12.2.0", "Python.h: No such file or directory")


def stand_in(folder, monkeypatch, code):
    """Let `import torch` find a package that does something else."""
    place = folder / "torch"
    place.mkdir()
    (place / "__init__.py").write_text(textwrap.dedent(code), encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.delitem(sys.modules, "torch", raising=False)


class TestTorch:
    def test_that_cannot_be_imported(self, tmp_path, monkeypatch):
        stand_in(tmp_path, monkeypatch, "raise ImportError('libcudart.so.12: cannot open shared object file')")
        torch, accelerators, speeds = ask()
        assert torch.failure == ("ImportError: libcudart.so.12: cannot open shared object file, when it was imported")
        assert (accelerators, speeds) == ((), ())

    @pytest.mark.skipif(sys.platform == "win32", reason="signals")
    def test_that_crashes(self, tmp_path, monkeypatch):
        stand_in(tmp_path, monkeypatch, "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
        assert ask()[0].failure == "the process died of SIGILL when it was imported"

    @pytest.mark.program
    def test_that_hangs_after_its_first_answer(self, tmp_path, monkeypatch):
        stand_in(tmp_path, monkeypatch, "__version__ = '2.9.0'")
        (tmp_path / "torch" / "multiprocessing.py").write_text("import time; time.sleep(60)")
        torch, _, _ = ask(patience=2)
        assert torch.version == "2.9.0"
        assert torch.failure == "no answer within 2 s when it was asked about its build"

    def test_that_is_too_old_to_know_the_questions(self, tmp_path, monkeypatch):
        stand_in(tmp_path, monkeypatch, "__version__ = '1.13.1'")
        torch, _, _ = ask()
        assert torch.version == "1.13.1"
        assert torch.too_old

    def test_what_it_prints_is_no_answer(self, tmp_path, monkeypatch):
        stand_in(tmp_path, monkeypatch, "import os; os.write(1, b'{no answer'); __version__ = '2.9.0'")
        assert ask()[0].version == "2.9.0"

    def test_a_folder_of_that_name_is_not_torch(self, tmp_path, monkeypatch):
        (tmp_path / "torch").mkdir()
        monkeypatch.setattr(sys, "path", [str(tmp_path)])
        monkeypatch.delitem(sys.modules, "torch", raising=False)
        assert ask()[0].version is None

    def test_answers_of_a_gpu(self):
        answers = {
            "version": "2.9.0+cu128",
            "build": {
                "cuda": "12.8",
                "rocm": None,
                "cudnn": "9.10.2",
                "architectures": ["sm_90"],
                "threads": 32,
                "sharing": "file_descriptor",
                "backends": ["gloo", "nccl"],
            },
            "device": {"device": "cuda", "precision": "bf16", "precision_reason": "it has it"},
            "accelerators": [
                {
                    "device": "cuda:0",
                    "name": "NVIDIA H100",
                    "memory": 80 * GIB,
                    "free": 79 * GIB,
                    "capability": "9.0",
                    "native": ["tf32", "bf16", "fp16"],
                    "failure": None,
                    "speeds": [{"format": "bf16", "seconds": 1e-3, "size": 4096}],
                }
            ],
            "speeds": [],
            "warnings": [],
        }
        torch, (gpu,), speeds = read(answers)
        assert (torch.build, torch.precision, torch.usable) == ("CUDA 12.8", "bf16", True)
        assert gpu.speeds[0].tflops == pytest.approx(412.3, abs=0.1)
        assert speeds == ()


class Stand:
    """A torch with one GPU: the CPU of this machine under another name."""

    def __init__(self, torch, **parts):
        self.torch = torch
        self.__dict__ |= parts

    def __getattr__(self, name):
        return getattr(self.torch, name)


def one_gpu(major, minor, mem_get_info=lambda number: (60 * GIB, 80 * GIB)):
    import torch

    properties = SimpleNamespace(name="NVIDIA Stand-In", major=major, minor=minor, total_memory=80 * GIB)
    return Stand(
        torch,
        accelerator=SimpleNamespace(
            is_available=lambda: True,
            current_accelerator=lambda: SimpleNamespace(type="cuda"),
            device_count=lambda: 2,
        ),
        cuda=SimpleNamespace(get_device_properties=lambda number: properties, mem_get_info=mem_get_info),
        device=lambda kind, number=0: torch.device("cpu"),
        version=SimpleNamespace(cuda="12.8", hip=None),
    )


class TestAccelerators:
    def test_are_described_and_one_of_each_name_is_timed(self, monkeypatch):
        monkeypatch.setattr(inside_torch, "_BUDGET_S", 0.0)
        monkeypatch.setattr(inside_torch, "_LONGEST_S", 0.0)
        monkeypatch.setattr(inside_torch, "_SIZES", {"cpu": (32, 64), "cuda": ()})
        first, second = inside_torch._accelerators(one_gpu(9, 0))
        assert (first["device"], first["capability"], first["free"]) == ("cuda:0", "9.0", 60 * GIB)
        assert first["native"] == ["tf32", "bf16", "fp16"]
        assert first["failure"] is None
        assert [speed["format"] for speed in first["speeds"]] == ["fp32", "tf32", "bf16", "fp16"]
        assert {speed["size"] for speed in first["speeds"]} == {32}
        assert "speeds" not in second
        gpu = read({"version": "2.9", "accelerators": [first, second]})[1][1]
        assert gpu.speeds == ()

    @pytest.mark.parametrize(
        ("capability", "native"),
        [((7, 5), ["fp16"]), ((6, 1), ["fp16"]), ((5, 0), []), ((8, 6), ["tf32", "bf16", "fp16"])],
    )
    def test_formats_are_those_of_the_generation(self, capability, native):
        assert inside_torch._cuda(one_gpu(*capability), 0)["native"] == native

    def test_memory_that_is_not_reported_is_unknown(self):
        def refuse(number):
            raise RuntimeError("CUDA error: operation not permitted")

        assert inside_torch._cuda(one_gpu(9, 0, refuse), 0)["free"] is None

    def test_a_device_that_fails_is_quoted_by_its_first_line(self):
        import torch

        def refuse(*shape, device):
            raise torch.AcceleratorError("CUDA error: no kernel image\nCUDA kernel errors can be reported later")

        assert inside_torch._failure(Stand(torch, ones=refuse), "cuda") == "CUDA error: no kernel image"

    @pytest.mark.program
    def test_switches_are_as_they_were(self):
        import torch

        before = torch.get_float32_matmul_precision()
        inside_torch._speeds(torch, "cpu", ("fp32", "tf32"))
        assert torch.get_float32_matmul_precision() == before
