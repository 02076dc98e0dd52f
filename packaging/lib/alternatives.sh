# shellcheck shell=bash
# Debian chooses between programs (and between BLAS libraries) with links that maintainer scripts
# make through update-alternatives. The root's scripts are not run, so the links are read from them.

# alternatives_in: maintainer scripts on standard input; prints `priority link target` for each link
# that is written out in full.
alternatives_in() {
  sed -e ':join' -e '/\\$/{N;s/\\\n/ /;b join' -e '}' | awk '
    /update-alternatives/ && /--install/ && $0 !~ /^[ \t]*#/ {
      priority = 0
      for (i = 1; i <= NF; i++) {
        if ($i ~ /^#/) break
        if ($i == "--install") { priority = $(i + 4) + 0; print priority, $(i + 1), $(i + 3) }
        if ($i == "--slave") print priority, $(i + 1), $(i + 3)
      }
    }' | grep -E '^[0-9]+ /[^ "$]+ /[^ "$]+$' || true
}

# link_alternatives ROOT: `priority link target` lines on standard input; the highest priority wins.
# A link whose target is absent is skipped, one that a package ships is left alone.
link_alternatives() {
  local root=$1 link target
  sort -k1,1nr | while read -r _ link target; do
    [[ $link != /etc/* && -e $root$target && ! -e $root$link && ! -L $root$link ]] || continue
    ln -s --relative "$root$target" "$root$link" || return
  done
}
