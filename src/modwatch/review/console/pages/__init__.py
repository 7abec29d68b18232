"""The pages, one place of the console a module. Every address in them is relative."""
