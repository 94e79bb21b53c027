"""``python -m analysis.training [--study a] [--estimate] [--table]``: make the runs that are missing.

The estimate is printed first. Each run is resumed where it stopped, and its record written as it finishes, so that
the studies can be stopped at any time. A run keeps about one core busy: ``--share 1/2`` and ``--share 2/2`` in two
processes make every other arm each.
"""

import argparse
import sys

from analysis.training.arms import ARMS
from analysis.training.estimate import estimate
from analysis.training.outcomes import decided, table
from analysis.training.running import perform_arms
from analysis.training.studies import STUDIES


def main() -> int:
    """Print the estimate, then run, then print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m analysis.training", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--study", choices=sorted(STUDIES), action="append", help="one of them; all if not given")
    parser.add_argument("--arm", action="append", help="one arm of them; all if not given")
    parser.add_argument("--share", default="1/1", help="which share of the arms, as 1/2")
    parser.add_argument("--estimate", action="store_true", help="print the estimate alone")
    parser.add_argument("--table", action="store_true", help="print what has been made alone")
    options = parser.parse_args()
    if options.table:
        return _print_table()
    studies = [STUDIES[letter] for letter in options.study or STUDIES]
    total = 0.0
    for letter, one in estimate(studies).items():
        print(f"study {letter}: {one.runs} runs, {one.made} made; about {one.minutes:.0f} CPU minutes left")
        total += one.minutes
    print(f"about {total:.0f} CPU minutes of one core in all", flush=True)
    if options.estimate:
        return 0
    part, parts = (int(number) for number in options.share.split("/"))
    # The same arms in every study, so that no run is made twice.
    mine = list(ARMS)[part - 1 :: parts]
    for study in studies:
        perform_arms(study, [arm for arm in mine if options.arm is None or arm in options.arm])
    return 0


PAGE = """# What the training studies found

Made by `python -m analysis.training --table` from `analysis/training/records/`. Networks of width 64 with 2 heads, 32
positions, batches of 16 from an order-2 Markov source over 16 symbols; AdamW unless the arm says SGD. The learning rate
is the best of a sweep with one seed at a third of the steps (a star: at an edge of the sweep). The loss is on held-out
batches, in nats; its error is over seeds where there are several, else over batches. Beside it stands what is known at
initialisation in closed form: the mean correlation behind the last layer; log10 of the largest over the smallest
squared norm of a layer's value gradient; and log10 of the queries' over the values' squared norms, each summed over
all layers.

{table}

## What replicates

By how much, in nats, and the standard error of that; within two of them it is too close to tell.

{claims}
"""


def _print_table() -> int:
    claims = "\n".join(f"- {statement}: {verdict}" for statement, verdict in decided())
    print(PAGE.format(table=table(), claims=claims), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
