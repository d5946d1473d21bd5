"""What all commands share: options, results, prompts, progress, errors."""
