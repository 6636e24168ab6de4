"""`make mutants`: changes the code that judges, one spot at a time, and asks whether a pure test notices."""
