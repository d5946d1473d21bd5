"""What all commands share: options, answers, questions, progress, failures."""
