"""What is wrong with a network at initialisation, and what would fix it: `kernelprop.diagnosis.diagnose`."""
