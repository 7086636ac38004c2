"""Where does the luck of lottery tickets live (Figure 5 of `pareto`)? See fewfire/papers/pareto/figure5.py.

python benchmarks/figure5.py run docs/results        # continues figure5.json; half an hour of a core
python benchmarks/figure5.py page docs/results       # figure5.md from it
"""

import sys

from fewfire.papers.pareto.figure5 import main

if __name__ == "__main__":
    sys.exit(main())
