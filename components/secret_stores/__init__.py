"""Secret stores: typed providers apart from stores, and who reads whose credential through them."""
