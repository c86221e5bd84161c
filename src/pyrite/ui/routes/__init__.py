"""The JSON API of the page. Times are in seconds since 1970. An error is {"error": sentence}."""
