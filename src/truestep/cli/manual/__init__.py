"""Parts of ``truestep explain``.

- `by_symptom`: the causes of a symptom, as text and JSON.
- `of_post_mortem`: the page of a kind of post-mortem.
"""
