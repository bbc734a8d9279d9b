"""What every controller needs: settings, logs, metrics, the clock. Knows neither cluster nor cloud."""
