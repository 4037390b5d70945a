"""What stands in for services and for the store while cells are played."""
