"""What every store must do. Each test runs on all of them."""
