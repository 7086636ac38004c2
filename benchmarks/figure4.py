"""Does Figure 4 of `pareto` come out, and what would the whole of it cost on a GPU? See fewfire/papers/pareto/figure4.py.

python benchmarks/figure4.py run docs/results/figure4.json OUT.json --seconds 500    # continues the summary
python benchmarks/figure4.py plan docs/results/figure4.json                # GPU-hours of the whole, from probes
python benchmarks/figure4.py page docs/results/figure4.json docs/results/figure4.md
"""

import sys
from pathlib import Path

from fewfire.papers.pareto.figure4 import main

if __name__ == "__main__":
    sys.exit(main(Path(__file__).parents[1] / "examples" / "figure4.toml"))
