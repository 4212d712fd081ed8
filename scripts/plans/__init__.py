"""Parts of scripts/compare-plans.py: what is asked, and plans as they can be compared and imposed."""
