"""The documents of plans in OpenSearch, where KIT_DOCUMENTS names one (docs/stores.md)."""
