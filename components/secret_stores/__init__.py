"""Secret stores: typed providers separate from stores, and the reads and pushes that use them."""
