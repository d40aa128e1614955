"""The fixes: one family per file, one class per rule or group of rules, found by listing this folder."""
