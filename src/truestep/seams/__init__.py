"""The places where torch is touched: attributes replaced and restored, weak references, torch's own code rewritten."""
