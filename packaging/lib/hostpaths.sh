# shellcheck shell=bash
# Which paths of the host a command line names. Inside the environment only /usr is Debian 13's;
# everything else is the host's own. A host path under /usr therefore needs a mount of its own.

# named_paths ARGUMENT…: the real paths under /usr that ARGUMENTs name, one per line. Recognised:
# PATH, --option=PATH, key=@PATH and key=PATH. For a path yet to be made, its nearest directory.
named_paths() {
  local argument candidate real
  local -a candidates=()
  for argument in "$@"; do
    [[ $argument == *$'\n'* ]] && continue
    for candidate in "$argument" "${argument#*=}" "${argument#*=@}" "${argument#@}"; do
      if [[ $candidate == */* || -e $candidate || -L $candidate ]]; then candidates+=("$candidate"); fi
    done
  done
  ((${#candidates[@]} > 0)) || return 0
  # What cannot be resolved (a loop of links) names nothing.
  { realpath -m -- "${candidates[@]}" 2>/dev/null || true; } | while IFS= read -r real; do
    [[ $real == /usr/* ]] || continue
    while [[ ! -e $real ]]; do real=${real%/*}; done
    printf '%s\n' "$real"
  done | sort -u
}

# configured_paths ARGUMENT…: the same for what stands in quotes in a file of options (--config, TANDEM_CONFIG).
configured_paths() {
  local file=${TANDEM_CONFIG:-} line
  while (($# > 0)); do
    case $1 in
      --config) file=${2:-} ;;
      --config=*) file=${1#*=} ;;
    esac
    shift
  done
  [[ -n $file && -r $file && ! -d $file ]] || return 0
  local -a values=()
  while IFS= read -r line; do values+=("${line:1:-1}"); done < <(grep -oE "\"[^\"]*\"|'[^']*'" -- "$file" || true)
  ((${#values[@]} == 0)) || named_paths "${values[@]}"
}

# paths_to_mount ROOT PATH…: for each PATH that ROOT does not hold, the shortest part of it that ROOT
# lacks: /usr/share/models/a/b is mounted as /usr/share/models, so neighbours are there too.
# /usr/local is left out: it is mounted as a whole. A mount needs something to stand on, a
# placeholder in ROOT; those made before are known from a list, and are not content.
paths_to_mount() {
  local root=$1 path top rest
  local -A placeholder=()
  shift
  if [[ -e $root/.tandem/placeholders ]]; then
    while IFS= read -r path; do placeholder[$path]=1; done <"$root/.tandem/placeholders"
  fi
  for path in "$@"; do
    [[ $path == /usr || $path == /usr/local || $path == /usr/local/* ]] && continue
    top=/usr rest=${path#/usr/}
    while [[ -n $rest && -e $root$top && -z ${placeholder[$top]:-} ]]; do
      top+=/${rest%%/*}
      if [[ $rest == */* ]]; then rest=${rest#*/}; else rest=; fi
    done
    if [[ ! -e $root$top || -n ${placeholder[$top]:-} ]]; then printf '%s\n' "$top"; fi
  done | sort -u
}

# make_placeholders ROOT PATH…: PATHs as paths_to_mount prints them.
make_placeholders() {
  local root=$1 path
  shift
  for path in "$@"; do
    [[ -e $root$path ]] && continue
    printf '%s\n' "$path" >>"$root/.tandem/placeholders"
    if [[ -d $path ]]; then mkdir -p "$root$path"; else : >>"$root$path"; fi
  done
}

# gpu_libraries: the host's NVIDIA driver, CUDA and TensorRT libraries under /usr/lib, if it has a GPU.
gpu_libraries() {
  [[ -e /proc/driver/nvidia/version || -e /dev/nvidiactl ]] || return 0
  PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | sed -nE \
    's,.* => (/(usr/)?lib/[^ ]*/lib(cuda|nvidia|nvcuvid|nvinfer|nvonnxparser|cudnn|cublas|cufft|curand|nvrtc|nvJitLink)[^/]*)$,\1,p' |
    sed 's,^/lib/,/usr/lib/,'
}
