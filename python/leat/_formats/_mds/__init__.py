"""The shards that MosaicML Streaming writes (MDS)."""
