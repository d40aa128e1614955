"""Advice from the facts of other machines."""

from dataclasses import replace

import pytest
from machines import GIB, H100, MIB, SERVER, WELL, failing, machine, speeds, unseen, with_runs

from truestep.doctor import advise
from truestep.doctor.facts import Graphics, Handles, Memory, Package, Processors, Shared, Torch


def only(facts):
    """The one piece of advice on a machine."""
    (advice,) = advise(facts)
    return advice


@pytest.mark.parametrize("facts", [WELL, SERVER], ids=["desktop", "server"])
def test_a_machine_that_is_well_gets_no_advice(facts):
    assert advise(facts) == []


class TestTorch:
    def test_missing_on_a_machine_without_gpu_names_the_build_for_the_cpu(self):
        advice = only(machine(torch=Torch()))
        assert (advice.level, advice.slug, advice.about) == ("problem", "torch-missing", "torch")
        assert "its smaller build for the CPU is enough, see https://pytorch.org/get-started/locally" in advice.text
        assert advice.command == 'pip install "truestep[torch]"'

    @pytest.mark.parametrize("graphics", [Graphics(nvidia=1, amd=0), Graphics(nvidia=0, amd=1), Graphics()])
    def test_missing_elsewhere_installs_the_usual_build(self, graphics):
        assert only(machine(torch=Torch(), graphics=graphics)).command == 'pip install "truestep[torch]"'

    def test_missing_in_an_environment_of_uv_is_installed_by_uv(self):
        facts = machine(torch=Torch(), graphics=Graphics(), interpreter__installer="uv pip install")
        assert only(facts).command == 'uv pip install "truestep[torch]"'

    def test_missing_on_macos_installs_the_usual_build(self):
        facts = machine(torch=Torch(), interpreter__system="Darwin arm64")
        assert only(facts).command == 'pip install "truestep[torch]"'

    @pytest.mark.parametrize("failure", [None, "AttributeError: module 'torch' has no attribute 'accelerator'"])
    def test_too_old_is_that_alone(self, failure):
        advice = only(machine(torch=Torch(version="2.4.1", failure=failure)))
        assert (advice.level, advice.slug) == ("problem", "torch-too-old")
        assert advice.command == 'pip install --upgrade "torch>=2.8"'

    @pytest.mark.parametrize("version", ["2.8.0", "2.10.0a0+git12ab", "2.8.0.dev20250601+cu128"])
    def test_new_enough(self, version):
        assert advise(machine(torch__version=version)) == []

    @pytest.mark.parametrize("version", ["2.15.1+cu132", "2.15.0a0+git12ab"])
    def test_checked(self, version):
        assert advise(machine(torch__version=version)) == []

    @pytest.mark.parametrize("version", ["2.16.0", "3.0", "2.100.0.dev20270601+cpu"])
    def test_newer_than_any_that_was_checked_is_a_hint(self, version):
        advice = only(machine(torch__version=version))
        assert (advice.level, advice.slug, advice.about) == ("hint", "torch-not-checked", "torch")
        assert "a torch newer than 2.15" in advice.text

    def test_that_dies_is_a_problem_that_quotes_it(self):
        facts = machine(torch=Torch(version="2.9.0", failure="the process died of SIGILL when it was imported"))
        advice = only(facts)
        assert (advice.level, advice.slug) == ("problem", "torch-fails")
        assert "SIGILL" in advice.text


class TestPython:
    @pytest.mark.parametrize("version", ["3.11.0", "3.12.9", "3.13.5"])
    def test_checked_or_between(self, version):
        assert advise(machine(interpreter__version=version)) == []

    @pytest.mark.parametrize(
        ("version", "where"),
        [("3.14.0", "newer than 3.13"), ("3.15.0b1", "newer than 3.13"), ("3.10.2", "older than 3.11")],
    )
    def test_outside_of_what_was_checked_is_a_hint(self, version, where):
        advice = only(machine(interpreter__version=version))
        assert (advice.level, advice.slug, advice.about) == ("hint", "python-not-checked", "python")
        assert where in advice.text


class TestGpuThatTorchDoesNotSee:
    def test_with_a_build_for_the_cpu(self):
        advice = only(unseen(torch__cuda=None, torch__cudnn=None, torch__architectures=()))
        assert (advice.level, advice.slug) == ("warning", "accelerator-needs-build")
        assert "2 NVIDIA GPUs" in advice.text
        assert advice.command.startswith("pip install --force-reinstall torch")

    def test_on_arm_no_command_is_given_that_would_not_help(self):
        facts = unseen(torch__cuda=None, torch__architectures=(), interpreter__system="Linux aarch64")
        assert only(facts).command == ""

    @pytest.mark.parametrize(("value", "shown"), [("", '=""'), ("-1", "=-1"), ("7", "=7")])
    def test_hidden_by_a_variable(self, value, shown):
        advice = only(unseen(variables=(("CUDA_VISIBLE_DEVICES", value),)))
        assert advice.slug == "accelerator-hidden"
        assert f"CUDA_VISIBLE_DEVICES{shown} hides" in advice.text

    def test_a_variable_that_names_a_gpu_is_not_blamed(self):
        facts = unseen(variables=(("CUDA_VISIBLE_DEVICES", "1"),), graphics__driver_cuda="11.4")
        assert only(facts).slug == "accelerator-driver-old"

    def test_without_a_driver(self):
        facts = unseen(graphics=Graphics(nvidia=1, amd=0))
        advice = only(facts)
        assert advice.slug == "accelerator-driver-missing"
        assert "1 NVIDIA GPU, but no driver" in advice.text
        assert advice.text.endswith("install the NVIDIA driver")

    def test_in_a_container_that_was_started_without_it(self):
        facts = unseen(graphics=Graphics(nvidia=1, amd=0, driver="570.86.15"), interpreter__container=True)
        advice = only(facts)
        assert advice.level == "hint"
        assert advice.text.endswith("start the container with --gpus all")

    def test_in_a_container_with_a_build_for_the_cpu(self):
        graphics = Graphics(nvidia=8, amd=0, driver="570.86.15")
        facts = machine(graphics=graphics, interpreter__container=True)
        advice = only(facts)
        assert (advice.level, advice.slug) == ("hint", "accelerator-needs-build")
        assert advice.text.endswith("start the container with --gpus all")

    def test_with_a_driver_of_an_older_cuda(self):
        advice = only(unseen(graphics__driver_cuda="11.4"))
        assert advice.slug == "accelerator-driver-old"
        assert "CUDA up to 11.4, but this build needs 12.8" in advice.text

    def test_a_driver_of_the_same_generation_is_not_blamed(self):
        said = "CUDA initialization: CUDA unknown error"
        advice = only(unseen(graphics__driver_cuda="12.2", torch__warnings=(said,)))
        assert advice.slug == "accelerator-unseen"
        assert said in advice.text

    def test_a_build_for_cuda_on_a_machine_without_gpu_is_no_mistake(self):
        assert advise(unseen(graphics=Graphics(nvidia=0, amd=0))) == []

    def test_an_amd_gpu_promises_nothing(self):
        assert advise(machine(graphics=Graphics(nvidia=0, amd=1))) == []


class TestGpu:
    def test_that_the_build_has_no_kernels_for(self):
        advice = only(failing(capability="6.1", failure="CUDA error: no kernel image is available for execution"))
        assert (advice.level, advice.slug, advice.about) == ("problem", "accelerator-fails", "cuda:0")
        assert "but not for sm_61" in advice.text

    def test_that_fails_otherwise_is_quoted(self):
        advice = only(failing(failure="CUDA error: uncorrectable ECC error encountered"))
        assert "uncorrectable ECC error" in advice.text
        assert "CUDA_VISIBLE_DEVICES" in advice.text

    def test_whose_memory_is_taken_by_others(self):
        advice = only(failing(failure="CUDA out of memory. Tried to allocate 2.00 MiB."))
        assert (advice.level, advice.command) == ("problem", "nvidia-smi")

    def test_of_apple_that_fails(self):
        facts = machine(accelerators=(replace(H100, device="mps", capability=None, failure="MPS backend failed"),))
        assert only(facts).text.endswith('train with device="cpu"')

    def test_whose_memory_others_hold(self):
        advice = only(replace(SERVER, accelerators=(replace(H100, free=20 * GIB),)))
        assert (advice.level, advice.slug, advice.command) == ("warning", "accelerator-memory-held", "nvidia-smi")
        assert "60 GiB of its memory are in use" in advice.text

    def test_whose_desktop_holds_a_little(self):
        assert advise(replace(SERVER, accelerators=(replace(H100, free=int(78.5 * GIB)),))) == []

    def test_that_is_slower_in_what_auto_takes(self):
        pascal = replace(H100, capability="6.1", native=("fp16",), speeds=speeds(1024, fp32=1e-3, fp16=5e-3))
        facts = machine(SERVER, accelerators=(pascal,), torch__precision="fp16", torch__architectures=("sm_61",))
        advice = only(facts)
        assert (advice.level, advice.slug) == ("warning", "precision-auto-slow")
        assert advice.text == 'pass precision="fp32": fp16, the choice of "auto", takes 5.0 times as long here'

    def test_several_without_nccl(self):
        assert only(machine(SERVER, torch__backends=("gloo",))).slug == "distributed-nccl-missing"

    def test_one_needs_no_nccl(self):
        assert advise(replace(machine(SERVER, torch__backends=()), accelerators=(H100,))) == []


class TestPrecisionOnTheCpu:
    def test_bf16_that_is_slower(self):
        advice = only(machine(processors__speeds=speeds(256, fp32=1e-3, bf16=4e-3)))
        assert (advice.level, advice.slug) == ("hint", "precision-bf16-slow")
        assert advice.text.startswith('keep precision="fp32"')
        assert advice.text.endswith("4.0 times as long")

    def test_bf16_that_is_faster(self):
        advice = only(machine(processors__speeds=speeds(1024, fp32=4e-3, bf16=1e-3)))
        assert (advice.level, advice.slug) == ("hint", "precision-bf16-fast")
        assert advice.text.startswith('try precision="bf16"')
        assert advice.text.endswith("4.0 times as fast")

    def test_is_of_no_concern_where_a_gpu_computes(self):
        assert advise(machine(SERVER, processors__speeds=speeds(256, fp32=1e-3, bf16=4e-3))) == []


class TestThreads:
    def test_of_a_container_with_a_quota(self):
        processors = Processors(name="AMD EPYC", present=64, allowed=64, cores=64, quota=2.0)
        advice = only(machine(processors=processors, torch__threads=64))
        assert (advice.level, advice.slug) == ("warning", "threads-too-many")
        assert advice.text == "torch computes with 64 threads, but this process has 2 processors"
        assert advice.command == "export OMP_NUM_THREADS=2"

    def test_half_a_processor_is_one(self):
        processors = Processors(name="AMD EPYC", present=2, allowed=2, cores=2, quota=0.5)
        slugs = [advice.slug for advice in advise(machine(processors=processors, torch__threads=2))]
        assert slugs == ["threads-too-many", "threads-one"]

    def test_that_a_variable_keeps_from_working(self):
        advice = only(machine(torch__threads=1, variables=(("OMP_NUM_THREADS", "1"),)))
        assert (advice.slug, advice.command) == ("threads-too-few", "unset OMP_NUM_THREADS")
        assert "leaves 3 of 4 cores" in advice.text

    def test_few_leave_no_core_without_work_where_others_want_it(self):
        facts = machine(torch__threads=1, variables=(("OMP_NUM_THREADS", "1"),), processors__load=9.0)
        assert advise(facts) == []

    def test_one_for_each_core_of_two_threads_is_what_torch_takes_itself(self):
        assert advise(machine(torch__threads=4, variables=(("OMP_NUM_THREADS", "4"),))) == []

    def test_few_are_right_where_several_ranks_share_the_machine(self):
        ranks = (("LOCAL_WORLD_SIZE", "8"), ("OMP_NUM_THREADS", "1"), ("RANK", "0"))
        assert advise(machine(torch__threads=1, variables=ranks)) == []

    def test_of_several_ranks(self):
        ranks = (("LOCAL_WORLD_SIZE", "4"), ("RANK", "0"))
        advice = only(machine(torch__threads=4, variables=ranks))
        assert "each of 4 ranks has 2 processors" in advice.text

    def test_that_others_want_too(self):
        advice = only(machine(processors__load=20.0))
        assert (advice.level, advice.slug) == ("warning", "processors-crowded")
        assert advice.text.startswith("20 threads competed for 8 processors")


class TestMemory:
    def test_that_a_cgroup_limits(self):
        memory = Memory(total=64 * GIB, available=60 * GIB, limit=4 * GIB, limit_free=GIB)
        advice = only(machine(memory=memory))
        assert (advice.level, advice.slug) == ("warning", "memory-low")
        assert "1 GiB is left of this process's limit of 4 GiB" in advice.text

    def test_that_others_have(self):
        advice = only(machine(memory=Memory(total=16 * GIB, available=GIB)))
        assert advice.command.startswith("ps ")

    @pytest.mark.parametrize("memory", [Memory(), Memory(total=16 * GIB), Memory(total=GIB * 4, available=GIB * 3)])
    def test_enough_or_unknown(self, memory):
        assert advise(machine(memory=memory)) == []


class TestSharedMemory:
    SMALL = Shared(path="/dev/shm", total=64 * MIB, free=64 * MIB, writable=True)

    def test_of_a_container(self):
        advice = only(machine(shared=self.SMALL, interpreter__container=True))
        assert (advice.level, advice.slug) == ("warning", "shared-memory-small")
        assert "--shm-size=16g" in advice.text

    def test_of_a_container_is_sized_by_its_limit(self):
        memory = Memory(total=512 * GIB, available=400 * GIB, limit=8 * GIB, limit_free=7 * GIB)
        advice = only(machine(shared=self.SMALL, interpreter__container=True, memory=memory))
        assert "--shm-size=4g" in advice.text

    def test_of_a_machine(self):
        assert only(machine(shared=self.SMALL)).command == "mount -o remount,size=16G /dev/shm"

    def test_that_is_full(self):
        advice = only(machine(shared=replace(self.SMALL, total=16 * GIB)))
        assert advice.command == "ls -l /dev/shm"

    def test_that_is_closed(self):
        assert only(machine(shared=replace(self.SMALL, writable=False))).slug == "shared-memory-closed"

    def test_that_is_none(self):
        assert advise(machine(shared=None)) == []


class TestOpenFiles:
    def test_few_that_can_be_more(self):
        advice = only(machine(handles=Handles(soft=1024, hard=1048576)))
        assert (advice.level, advice.slug, advice.command) == ("hint", "handles-few", "ulimit -n 65536")

    def test_few_that_cannot(self):
        advice = only(machine(handles=Handles(soft=1024, hard=1024)))
        assert advice.command == ""
        assert 'set_sharing_strategy("file_system")' in advice.text

    @pytest.mark.parametrize("handles", [None, Handles(soft=None, hard=None)])
    def test_without_limit(self, handles):
        assert advise(machine(handles=handles)) == []

    def test_do_not_matter_where_tensors_come_as_files(self):
        assert advise(machine(handles=Handles(soft=256, hard=256), torch__sharing="file_system")) == []


class TestDisk:
    def test_that_is_read_only(self):
        facts = with_runs(failure="read-only file system", read_only=True, write_speed=None)
        advice = only(facts)
        assert (advice.level, advice.slug, advice.about) == ("problem", "runs-folder-read-only", "disk")

    def test_that_refuses(self):
        advice = only(with_runs(failure="permission denied", write_speed=None))
        assert (advice.level, advice.slug) == ("problem", "runs-folder-fails")
        assert "(permission denied)" in advice.text

    @pytest.mark.parametrize("failure", [None, "no space left on device"])
    def test_that_is_full(self, failure):
        advice = only(with_runs(free=5 * MIB, failure=failure))
        assert (advice.level, advice.slug) == ("problem", "runs-folder-full")
        assert advice.text.startswith("5 MiB free")

    def test_that_holds_small_models_only(self):
        advice = only(with_runs(free=3 * GIB))
        assert (advice.level, advice.slug) == ("warning", "runs-folder-small")
        assert "54 million parameters" in advice.text

    def test_without_room_for_more_files(self):
        assert only(with_runs(files_free=12)).slug == "runs-folder-files"

    def test_that_is_slow(self):
        advice = only(with_runs(write_speed=10 * MIB, system="nfs4", network=True))
        assert (advice.level, advice.slug) == ("hint", "runs-folder-slow")
        assert "takes 102 s to write" in advice.text

    @pytest.mark.parametrize(
        ("system", "container", "slugs"),
        [
            ("tmpfs", False, ["runs-folder-in-memory"]),
            ("overlay", True, ["runs-folder-in-container"]),
            ("overlay", False, []),
            ("ext4", True, []),
        ],
    )
    def test_that_does_not_last(self, system, container, slugs):
        facts = machine(with_runs(system=system), interpreter__container=container)
        assert [advice.slug for advice in advise(facts)] == slugs

    def test_for_temporary_files_that_is_full(self):
        runs, temporary = WELL.folders
        advice = only(machine(folders=(runs, replace(temporary, free=MIB))))
        assert (advice.level, advice.slug, advice.about) == ("warning", "temporary-folder-full", "temp folder")


class TestCompiler:
    def test_that_is_not_there(self):
        advice = only(machine(compiler__path=None))
        assert (advice.slug, advice.command) == ("compile-compiler-missing", "apt install g++")

    def test_of_a_variable_that_is_not_there(self):
        advice = only(machine(compiler__path=None, compiler__failure='CXX is "icpx", but no program has that name'))
        assert advice.command == "unset CXX"

    def test_that_lacks_the_headers_of_python(self):
        advice = only(machine(compiler__failure="Python.h: No such file or directory"))
        assert (advice.slug, advice.command) == ("compile-compiler-fails", "apt install python3.12-dev")

    def test_commands_of_apt_are_given_where_there_is_apt(self):
        assert only(machine(compiler__path=None, interpreter__debian=False)).command == ""

    def test_for_a_gpu_without_triton(self):
        assert only(machine(SERVER, compiler__triton=None)).command == "pip install triton"


class TestVariables:
    @pytest.mark.parametrize(
        "name",
        ["CUDA_LAUNCH_BLOCKING", "PYTORCH_NO_CUDA_MEMORY_CACHING", "TORCH_CUDA_SANITIZER", "NCCL_P2P_DISABLE"],
    )
    def test_that_cost_on_a_gpu_are_named_where_there_is_one(self, name):
        variables = ((name, "1"),)
        assert only(machine(SERVER, variables=variables)).about == name
        assert advise(machine(variables=variables)) == []
        assert advise(machine(SERVER, variables=((name, "0"),))) == []

    @pytest.mark.parametrize(
        "name",
        ["TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE", "KMP_DUPLICATE_LIB_OK", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"],
    )
    def test_that_cost_everywhere(self, name):
        assert only(machine(variables=((name, "TRUE"),))).about == name

    def test_that_slow_collectives(self):
        assert only(machine(variables=(("TORCH_DISTRIBUTED_DEBUG", "DETAIL"),))).about == "TORCH_DISTRIBUTED_DEBUG"
        assert advise(machine(variables=(("TORCH_DISTRIBUTED_DEBUG", "INFO"),))) == []

    def test_that_takes_tf32_away(self):
        variables = (("NVIDIA_TF32_OVERRIDE", "0"),)
        assert only(machine(SERVER, variables=variables)).about == "NVIDIA_TF32_OVERRIDE"
        assert advise(machine(variables=variables)) == []

    def test_of_cublas(self):
        assert advise(machine(SERVER, variables=(("CUBLAS_WORKSPACE_CONFIG", ":4096:8"),))) == []
        assert only(machine(SERVER, variables=(("CUBLAS_WORKSPACE_CONFIG", "1"),))).about == "CUBLAS_WORKSPACE_CONFIG"


class TestPackages:
    def test_that_truestep_needs(self):
        advice = only(machine(packages=(Package(name="rich", needs=">=13.9", version=None),)))
        assert (advice.level, advice.command) == ("problem", 'pip install "rich>=13.9"')

    def test_of_an_extra_in_an_old_version(self):
        package = Package(name="torchmetrics", needs=">=1.6", version="1.2.0", extra="metrics")
        advice = only(machine(packages=(package,)))
        assert (advice.level, advice.slug, advice.about) == ("warning", "package-does-not-fit", "[metrics]")
        assert "1.2.0 is installed" in advice.text
