#!/usr/bin/env bash
# Does what a newcomer does: clones, and follows the README to the letter in an empty HOME. Fails on the first surprise.
#
#   tools/newcomer.sh [REPOSITORY [FOLDER]]     this one, into a folder that is removed afterwards, unless given
#
# The commands are read from README.md, so that a command that is printed there and does not work is found here. With a
# FOLDER the clone stays there as FOLDER/fewfire. PYTEST_ADDOPTS and the variables of tools/portable.py are handed on.
set -euo pipefail
repository=$(cd "${1:-$(dirname "$0")/..}" && pwd)
work=${2:-$(mktemp -d)}
[ $# -gt 1 ] || trap 'rm -rf "$work"' EXIT
mkdir -p "$work/home"
cd "$work"

surprise() { echo "newcomer: $*" >&2; exit 1; }

# An environment of its own: nothing of the caller's Python, but where packages come from.
clean() {
  local kept=() name
  for name in PIP_CONFIG_FILE PIP_INDEX_URL PIP_FIND_LINKS PYTEST_ADDOPTS FEWFIRE_ISA OPENBLAS_CORETYPE; do
    [ -z "${!name:-}" ] || kept+=("$name=${!name}")
  done
  env -i PATH="$PATH" HOME="$work/home" LANG=C.UTF-8 "${kept[@]}" bash -euo pipefail -c "$1"
}

# The first block of plain commands in the README that has the text, comments left out.
block() {
  awk -v wanted="$1" '/^```/ { if (inside && plain && index(text, wanted)) { printf "%s", text; exit }
    inside = !inside; plain = ($0 == "```"); text = ""; next } inside { text = text $0 "\n" }' "$repository/README.md" | sed 's/  *# .*//'
}

# The first block of Python in the README that has the text.
snippet() {
  awk -v wanted="$1" '/^```/ { if (inside && python && index(text, wanted)) { printf "%s", text; exit }
    inside = !inside; python = ($0 == "```python"); text = ""; next } inside { text = text $0 "\n" }' "$repository/README.md"
}

mapfile -t commands < <(block "git clone ")
[[ ${commands[0]} == "git clone "*" && cd fewfire" ]] || surprise "README's first commands begin with: ${commands[0]}"
[ "${commands[*]:1}" = "make demo make test" ] || surprise "README's first commands are: ${commands[*]:1}"
if ! git clone --quiet "$repository" fewfire; then
  echo "newcomer: $repository cannot be cloned; its files are copied"
  rm -rf fewfire && mkdir fewfire
  tar -C "$repository" --exclude=./.git --exclude=./.venv --exclude=./build -cf - . | tar -C fewfire -xf -
fi
cd fewfire
begun=$SECONDS
clean "make demo" | tee ../demo.txt
echo "newcomer: make demo took $((SECONDS - begun)) s"
sed -i 's/ *$//' ../demo.txt
[[ $(tail -n 1 ../demo.txt) == "Wrote frontier.html "* ]] || surprise "make demo ends with: $(tail -n 1 ../demo.txt)"
grep -q "Learned support: (3, 13, 19)" ../demo.txt || surprise "make demo did not learn the parity"
if .venv/bin/python -c "import fewfire._core" 2>/dev/null; then  # without a compiler the grid is a smaller one
  while IFS= read -r line; do  # what the README shows is what is printed, up to the size of the page
    grep -qxF -- "$line" ../demo.txt || surprise "make demo did not print: $line"
  done < <(block "Learned support" | grep -v "^Wrote ")
fi
for file in frontier.html frontier.sqlite; do [ -s "$file" ] || surprise "there is no $file"; done
begun=$SECONDS
clean "make test" | tee ../test.txt
echo "newcomer: make test took $((SECONDS - begun)) s"
[ "$(tail -n 1 ../test.txt)" = "All tests passed." ] || surprise "make test ends with: $(tail -n 1 ../test.txt)"

snippet TabularClassifier >../table.py
printed=$(clean ".venv/bin/python ../table.py")
grep -qxE "0\.9[3-9][0-9]*" <<<"$printed" || surprise "the snippet for a table prints: $printed"
snippet fewfire.torch >../model.py
[ -s ../model.py ] || surprise "the README has no snippet for a PyTorch model"
if .venv/bin/python -c "import torch" 2>/dev/null; then
  printed=$(clean ".venv/bin/python ../model.py")
  [[ $printed == *" of 1 blocks sparse"* ]] || surprise "the snippet for a PyTorch model prints: $printed"
else
  echo "newcomer: PyTorch is not installed; the tests run its snippet where it is"
fi

clean "$(block "sweep run")"
[ -s report.html ] || surprise "there is no report.html"
ls figures/*.png >/dev/null || surprise "there are no figures"

python3 -m venv ../own
install=$(block "pip install . " | grep "^pip install") || surprise "the README says nowhere how to install into an environment"
clean "PATH=$work/own/bin:\$PATH; $install; cd /; fewfire doctor; fewfire --version" || surprise "$install failed"
echo "newcomer: no surprise"
