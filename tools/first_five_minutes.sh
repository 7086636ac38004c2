#!/usr/bin/env bash
# Does what a newcomer does: clones, and follows the README to the letter in an empty HOME. Fails on the first surprise.
#
#   tools/first_five_minutes.sh [REPOSITORY]     this one unless given; five minutes on two idle cores
#
# The commands are read from README.md, so that a command that is printed there and does not work is found here.
set -euo pipefail
repository=$(cd "${1:-$(dirname "$0")/..}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/home"
cd "$work"

surprise() { echo "first five minutes: $*" >&2; exit 1; }

# An environment of its own: nothing of the caller's Python, but where packages come from.
clean() {
  env -i PATH="$PATH" HOME="$work/home" LANG=C.UTF-8 ${PIP_CONFIG_FILE:+PIP_CONFIG_FILE="$PIP_CONFIG_FILE"} \
    ${PIP_INDEX_URL:+PIP_INDEX_URL="$PIP_INDEX_URL"} ${PIP_FIND_LINKS:+PIP_FIND_LINKS="$PIP_FIND_LINKS"} bash -euo pipefail -c "$1"
}

# The n-th block of plain commands in the README (those of ```python are run by the tests), comments left out.
block() {
  awk -v wanted="$1" '/^```/ { if (inside) inside = 0; else { inside = 1; plain = ($0 == "```"); if (plain) count++ } next }
    inside && plain && count == wanted' "$repository/README.md" | sed 's/  *# .*//'
}

one=$(block 1)
[[ $one == "git clone "*" && cd fewfire && make demo" ]] || surprise "README begins with: $one"
if ! git clone --quiet "$repository" fewfire; then
  echo "first five minutes: $repository cannot be cloned; its files are copied"
  rm -rf fewfire && mkdir fewfire
  tar -C "$repository" --exclude=./.git --exclude=./.venv --exclude=./build -cf - . | tar -C fewfire -xf -
fi
cd fewfire
clean "make demo" | tee demo.txt
grep -q "Learned support: (3, 13, 19)" demo.txt || surprise "make demo did not learn the parity"
# What the README shows is what is printed, up to the size of the page and spaces at the ends of lines.
sed -i 's/ *$//' demo.txt
while IFS= read -r line; do
  grep -qxF -- "$line" demo.txt || surprise "make demo did not print: $line"
done < <(block 2 | grep -v "^Wrote ")
for file in frontier.html frontier.sqlite; do [ -s "$file" ] || surprise "there is no $file"; done

clean "$(block 3)"
[ -s report.html ] || surprise "there is no report.html"
ls figures/*.png >/dev/null || surprise "there are no figures"

python3 -m venv own
install=$(block 4 | grep "^pip install") || surprise "the README says nowhere how to install into an environment"
clean "PATH=$PWD/own/bin:\$PATH; $install; cd /; fewfire doctor; fewfire --version" || surprise "$install failed"
echo "first five minutes: no surprise"
