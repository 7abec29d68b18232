"""`python -m modwatch`: the command line."""

from modwatch.cli.main import program

if __name__ == "__main__":
    program()
