# shellcheck shell=bash
# ./tandem doctor: what this machine offers and lacks. Works without an environment or a build;
# the program adds what only it can see (ONNX Runtime and its providers).

# fact MARK NAME TEXT: MARK is `ok`, `--` (absent, with what it is for) or `!!` (in the way).
fact() { printf ' %s  %-16s %s\n' "$@"; }

doctor() {
  doctor_host
  doctor_environment
  doctor_limits
  doctor_gpu
  if [[ -n ${MODE:-} && -x $HERE/build/release/bin/tandem ]] &&
    [[ $(cat "$HERE/build/release/.tandem-environment" 2>/dev/null) == "$TANDEM_ENVIRONMENT" ]]; then
    inside built release doctor "$@"
  fi
  fact -- 'program' 'not built in this environment yet; ./tandem build tandem builds it, then doctor also lists ONNX Runtime and its providers'
}

doctor_host() {
  local PRETTY_NAME=unknown
  # shellcheck source=/dev/null
  . /etc/os-release 2>/dev/null || true
  fact ok 'system' "$PRETTY_NAME, Linux $(uname -r), $(uname -m), $(nproc) CPUs, user $(id -un)"
}

doctor_environment() {
  if [[ -n ${TANDEM_INSIDE:-} ]]; then
    fact ok 'isolation' "already inside the environment ($TANDEM_INSIDE)"
    prepare
    return
  fi
  local -a packages
  local cache key sections=(base) root why
  cache=$(cache_dir)
  mapfile -t packages < <(packages_in "$HERE/packaging/packages.txt" base)
  if (can_namespace); then
    fact ok 'namespaces' 'allowed'
  else
    fact -- 'namespaces' 'not allowed; needed on hosts other than Debian 13 unless you are root (sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000)'
  fi
  local mode
  if ! mode=$(detect_isolation "${packages[@]}" 2>&1); then
    fact '!!' 'isolation' "${mode//$'\n'/ }"
    return
  fi
  case $mode in
    native) why='Debian 13 packages of this host' ;;
    namespace) why='Debian 13 in place of /usr, in a mount namespace' ;;
    chroot) why='Debian 13 in a chroot: no namespaces here' && sections+=(chroot) ;;
  esac
  fact ok 'isolation' "$mode ($why)"
  key=$(environment_key "$HERE/packaging/packages.txt" "${sections[@]}")
  root=$cache/root-$key
  if [[ $mode == native ]]; then
    local missing
    missing=$(missing_packages "${packages[@]}")
    if [[ -z $missing ]]; then fact ok 'packages' 'installed'; else
      fact -- 'packages' "missing: ${missing//$'\n'/ }; the next command installs them"
    fi
  elif [[ -e $root/.tandem/complete ]]; then
    fact ok 'environment' "$root"
    fact ok 'compiler' "g++ $(find "$root/usr/lib/gcc/$(multiarch)" -mindepth 1 -maxdepth 1 -printf '%f\n' 2>/dev/null | sort -V | tail -n 1) in the environment"
  else
    fact -- 'environment' "not set up yet; the next command does it (about a minute and a half, 1.5 GB)"
  fi
  [[ $mode != native ]] || fact ok 'compiler' "$(g++ --version 2>/dev/null | head -n 1 || echo 'none yet')"
  doctor_cache "$cache" "$root"
  [[ -x $HERE/build/release/bin/tandem ]] || return 0
  if [[ $mode == native && -z $missing || -e $root/.tandem/complete ]]; then prepare; fi
}

doctor_cache() {
  local other
  if [[ -d $1 ]]; then
    fact ok 'cache' "$1, $(du -sh "$1" 2>/dev/null | cut -f1), $(df -h --output=avail "$1" | tail -n 1 | tr -d ' ') free (./tandem clean --cache removes it)"
  else
    fact -- 'cache' "$1, not there yet"
  fi
  for other in "$1"/root-*; do
    [[ ! -d $other || $other == "$2" ]] || fact -- 'other root' "$other, for another package list; removed when unused for two weeks"
  done
}

# nearest_limit ROOT GROUP FILE NONE: the first FILE from GROUP upwards that does not say NONE.
nearest_limit() {
  local group=$2 value
  while :; do
    value=$(cat "$1$group/$3" 2>/dev/null) || value=
    if [[ -n $value && $value != "$4"* ]]; then
      printf '%s\n' "$value"
      return
    fi
    [[ -n $group && $group != / ]] || return 0
    group=${group%/*}
  done
}

as_bytes() { numfmt --to=iec --suffix=B "$1" 2>/dev/null || echo "$1"; }

doctor_limits() {
  local cpu='' memory='' group quota period kind
  if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
    kind=v2
    group=$(sed -n 's/^0:://p' /proc/self/cgroup)
    cpu=$(nearest_limit /sys/fs/cgroup "$group" cpu.max max)
    memory=$(nearest_limit /sys/fs/cgroup "$group" memory.max max)
  else
    kind=v1
    group=$(sed -nE 's/^[0-9]+:([^:]*,)?cpu(,[^:]*)?:(.*)/\3/p' /proc/self/cgroup)
    quota=$(nearest_limit /sys/fs/cgroup/cpu "$group" cpu.cfs_quota_us -1)
    period=$(nearest_limit /sys/fs/cgroup/cpu "$group" cpu.cfs_period_us none)
    [[ -z $quota ]] || cpu="$quota $period"
    group=$(sed -nE 's/^[0-9]+:([^:]*,)?memory(,[^:]*)?:(.*)/\3/p' /proc/self/cgroup)
    memory=$(nearest_limit /sys/fs/cgroup/memory "$group" memory.limit_in_bytes 92233720368)
  fi
  if [[ -n $cpu ]]; then
    fact ok 'CPU limit' "$(awk '{ printf "%.2f CPUs (%d of %d µs)", $1 / $2, $1, $2 }' <<<"$cpu") by cgroup $kind; the server starts no more threads than fit"
  else
    fact ok 'CPU limit' "none by cgroup $kind"
  fi
  local total
  total=$(awk '/^MemTotal/ { printf "%.0f", $2 * 1024 }' /proc/meminfo)
  fact ok 'memory' "$(as_bytes "$total")$([[ -z $memory ]] || echo ", limited to $(as_bytes "$memory") by cgroup $kind")"
  local paranoid
  paranoid=$(cat /proc/sys/kernel/perf_event_paranoid 2>/dev/null) || paranoid=none
  if [[ ! -e /sys/bus/event_source/devices/cpu ]]; then
    fact -- 'perf counters' 'no hardware counters on this machine (usual in virtual ones); only measurements of interference by cache misses need them'
  elif [[ $paranoid == none ]] || { ((EUID != 0)) && ((paranoid > 2)); }; then
    fact -- 'perf counters' "forbidden (kernel.perf_event_paranoid=$paranoid); sysctl kernel.perf_event_paranoid=2 allows them"
  else
    fact ok 'perf counters' "available (kernel.perf_event_paranoid=$paranoid)"
  fi
}

doctor_gpu() {
  local nvcc='' header='' candidate
  if [[ -e /proc/driver/nvidia/version ]]; then
    fact ok 'NVIDIA driver' "$(sed -nE '1s/.*Module *([0-9.]+).*/\1/p' /proc/driver/nvidia/version)"
  else
    fact -- 'NVIDIA driver' 'none; needed to run models on a GPU'
  fi
  for candidate in "${CUDA_HOME:-/nonexistent}/bin/nvcc" /usr/local/cuda/bin/nvcc /usr/local/cuda-*/bin/nvcc "$(command -v nvcc || true)"; do
    [[ ! -x $candidate ]] || { nvcc=$candidate && break; }
  done
  if [[ -n $nvcc ]]; then
    fact ok 'CUDA toolkit' "$("$nvcc" --version | sed -n 's/.*release \([^,]*\),.*/\1/p') ($nvcc)"
  else
    fact -- 'CUDA toolkit' 'no nvcc; needed to compile for a GPU. Install it under /usr/local/cuda or set CUDA_HOME'
  fi
  for candidate in "${CUDA_HOME:-/usr/local/cuda}" /usr/local/tensorrt /opt/tensorrt /usr/local /usr; do
    [[ ! -e $candidate/include/NvInfer.h ]] || header=$candidate/include/NvInfer.h
    [[ ! -e $candidate/include/$(multiarch)/NvInfer.h ]] || header=$candidate/include/$(multiarch)/NvInfer.h
  done
  if [[ -n $header ]]; then
    fact ok 'TensorRT' "$header"
  else
    fact -- 'TensorRT' 'no NvInfer.h; needed only to build engine files. For the TensorRT provider point --ort-library at an ONNX Runtime that has it'
  fi
}
