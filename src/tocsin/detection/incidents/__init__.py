"""From evidence to incidents: verdicts, when an incident begins and ends, the audit of the promise, budgets."""
