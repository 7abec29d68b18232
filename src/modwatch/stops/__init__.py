"""What a stop of the path does that takes more than one package: lake rows to figures and back."""
