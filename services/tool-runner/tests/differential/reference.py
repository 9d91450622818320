"""What established libraries of Python read in files that are made at random, one case a line as JSON.

usage: reference.py KIND SEED CASES, KIND being calendars, mails or cards
"""
import importlib
import json
import sys


def main():
    kind, seed, cases = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    module = importlib.import_module(kind)
    for number in range(cases):
        print(json.dumps(module.case(seed * 1_000_000 + number)))


if __name__ == "__main__":
    main()
