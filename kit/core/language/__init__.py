"""What a text is made of, without any model: words, clauses, pleasantries."""
